/*
 * What the programs of loads share: random numbers that are the same in every run, and steps of time, so that a fast kernel
 * and a slow one are asked for the same.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PAGE = 4096, HUGE = 2 << 20, TICKS_A_SECOND = 20 };

static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t random_state = 88172645463325252u;

static inline uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t first_tick;
static int late_ticks;

/* Waits until tick I is over, or counts that it was over already. */
static inline void wait_tick(int i)
{
	uint64_t end = first_tick + (uint64_t)(i + 1) * (1000000000u / TICKS_A_SECOND), now = now_ns();
	if (now >= end) {
		late_ticks++;
		return;
	}
	struct timespec rest = { (time_t)((end - now) / 1000000000u), (long)((end - now) % 1000000000u) };
	nanosleep(&rest, NULL);
}
