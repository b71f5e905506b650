/*
 * orders SECONDS: four times a second what an ordinary host asks for in larger blocks, and counts what was refused.
 *
 * Pipes of 2 and 4 MiB have arrays of 20 and 40 KiB (order 3 and 4), half of them kept for a while; datagrams of 120 KiB have
 * fragments of order 3; each second four huge pages are asked for.
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIPES = 64, WAITING = 6 };

static int refused;

static void pipes(void)
{
	static int kept[PIPES][2], open_now[PIPES];
	for (int k = 0; k < 4; k++) {
		int i = (int)(random_number() % PIPES);
		if (open_now[i]) {
			close(kept[i][0]);
			close(kept[i][1]);
			open_now[i] = 0;
		} else if (!pipe(kept[i])) {
			open_now[i] = 1;
			if (fcntl(kept[i][0], F_SETPIPE_SZ, random_number() & 1 ? 4 << 20 : 2 << 20) < 0)
				refused++;
		}
	}
}

static void datagrams(void)
{
	static int pair[2], waiting = -1;
	static char message[120 << 10];
	if (waiting < 0) {
		int bytes = 4 << 20;
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
			return;
		setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes);
		waiting = 0;
	}
	for (int k = 0; k < 3; k++) {
		if (send(pair[0], message, sizeof message, MSG_DONTWAIT) > 0)
			waiting++;
		else
			refused++;
	}
	for (; waiting > WAITING; waiting--)
		if (recv(pair[1], message, sizeof message, MSG_DONTWAIT) <= 0)
			break;
}

static void huge_pages(void)
{
	char *p = mmap(NULL, 5 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q = (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	madvise(q, 4 * HUGE, MADV_HUGEPAGE);
	for (int k = 0; k < 4; k++)
		q[k * HUGE] = 1;
	usleep(300000);
	munmap(p, 5 * HUGE);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fputs("usage: orders SECONDS\n", stderr);
		return 2;
	}
	first_tick = now_ns();
	for (int i = 0; i < atoi(argv[1]) * TICKS_A_SECOND; i++) {
		if (i % 5 == 0) {
			pipes();
			datagrams();
		}
		if (i % TICKS_A_SECOND == 0)
			huge_pages();
		wait_tick(i);
	}
	printf("orders: %d refused, %d ticks late\n", refused, late_ticks);
	return 0;
}
