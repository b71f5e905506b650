/*
 * A host at work for hours:
 *
 *   load SECONDS SEED DIRECTORY
 *
 * Each part is a process of its own, draws its sizes and pauses from its own row of the seed, and goes on till the end:
 *
 * leak         pipes that nobody closes, a page in each: kernel memory that grows
 * connections  pipes that come and go, in quiet times few, in busy ones many
 * visitor      a program that comes, takes memory, and goes; there are two
 * build        each hour many programs that run for seconds, and files that they leave and remove
 * log          a file that grows
 * mail         small files that come and in part go
 * reader       reads here and there in a file that is larger than memory
 *
 * Nothing depends on the hour but builds. Quiet and busy times are drawn, so that those of later are as those of before.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KIB 1024ul
#define MIB (1024 * KIB)
#define PAGE 4096ul

static uint64_t state;
static double end;
static char room[MIB];

static uint64_t next(void)
{
	state += 0x9e3779b97f4a7c15;
	uint64_t z = state;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static unsigned long between(unsigned long from, unsigned long to)
{
	return from + next() % (to - from + 1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Ends the program at the end. */
static void pause_for(double seconds)
{
	struct timespec t;
	double until = now() + seconds;

	if (until >= end) {
		until = end;
		seconds = until - now();
	}
	t.tv_sec = seconds > 0 ? (time_t)seconds : 0;
	t.tv_nsec = seconds > 0 ? (long)((seconds - t.tv_sec) * 1e9) : 0;
	nanosleep(&t, NULL);
	if (now() >= end)
		exit(0);
}

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void open_pipe(int ends[2], unsigned long pages)
{
	if (pipe(ends))
		fail("pipe");
	if (write(ends[1], room, pages * PAGE) != (ssize_t)(pages * PAGE))
		fail("write to a pipe");
}

static void leak(void)
{
	for (;;) {
		unsigned long n = between(1, 24);
		int ends[2];

		while (n--)
			open_pipe(ends, 1);
		pause_for(between(30, 150));
	}
}

static void connections(void)
{
	enum { MOST = 3000 };
	static struct { int ends[2]; double closes; } all[MOST];
	unsigned long n = 0, most_at_once = 1;
	double changes = 0;

	for (;;) {
		double t = now();

		if (t >= changes) {
			most_at_once = between(0, 2) ? 2 : 14;
			changes = t + between(20 * 60, 60 * 60);
		}
		for (unsigned long i = 0; i < n;) {
			if (all[i].closes > t) {
				i++;
				continue;
			}
			close(all[i].ends[0]);
			close(all[i].ends[1]);
			all[i] = all[--n];
		}
		for (unsigned long new = between(0, most_at_once); new && n < MOST; new--, n++) {
			open_pipe(all[n].ends, between(1, 8));
			all[n].closes = t + between(30, 20 * 60);
		}
		pause_for(5);
	}
}

static void visitor(void)
{
	for (;;) {
		unsigned long size = between(2, 40) * MIB;
		char *at;

		pause_for(between(2 * 60, 15 * 60));
		at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (at == MAP_FAILED)
			fail("mmap");
		for (unsigned long i = 0; i < size; i += PAGE)
			at[i] = 1;
		pause_for(between(2 * 60, 20 * 60));
		munmap(at, size);
	}
}

static void write_file(const char *name, unsigned long size)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);

	if (fd < 0 || write(fd, room, size) != (ssize_t)size)
		fail(name);
	close(fd);
}

static void build(void)
{
	char name[64];

	for (unsigned long hour = 0;; hour++) {
		unsigned long programs = between(60, 150);

		pause_for(between(60, 8 * 60));
		for (unsigned long i = 0; i < programs; i++) {
			double seconds = between(1, 50) / 10.0;
			unsigned long size = between(256, 6 * 1024) * KIB;
			pid_t child = fork();

			if (child < 0)
				fail("fork");
			if (child == 0) {
				char *at = malloc(size);

				for (unsigned long k = 0; at && k < size; k += PAGE)
					at[k] = 1;
				pause_for(seconds);
				exit(0);
			}
			snprintf(name, sizeof(name), "build-%lu-%lu", hour, i);
			write_file(name, between(1, 64) * KIB);
			pause_for(0.5);
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
		}
		for (unsigned long i = 0; i < programs; i++) {
			snprintf(name, sizeof(name), "build-%lu-%lu", hour, i);
			if (between(0, 2))
				unlink(name);
		}
		while (waitpid(-1, NULL, 0) > 0)
			;
		pause_for(3600 - (unsigned long)now() % 3600);
	}
}

static void log_lines(void)
{
	for (;;) {
		write_file("log", between(4, 120) * KIB);
		pause_for(between(10, 50));
	}
}

static void mail(void)
{
	unsigned long last = 0;
	char name[64];

	for (;;) {
		for (unsigned long n = between(1, 10); n; n--) {
			snprintf(name, sizeof(name), "mail-%lu", last++);
			write_file(name, between(1, 32) * KIB);
			snprintf(name, sizeof(name), "mail-%lu", between(0, last - 1));
			if (between(0, 1))
				unlink(name);
		}
		pause_for(between(20, 60));
	}
}

static void reader(void)
{
	const unsigned long size = 512 * MIB;
	int fd = open("table", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || ftruncate(fd, size))
		fail("table");
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (;;) {
		unsigned long n = between(4, 32) * PAGE;

		if (pread(fd, room, n, between(0, (size - n) / PAGE) * PAGE) < 0)
			fail("read");
		pause_for(between(5, 60));
	}
}

int main(int argc, char **argv)
{
	static void (*const parts[])(void) = {
		leak, connections, visitor, visitor, build, log_lines, mail, reader,
	};
	struct rlimit files = {1 << 18, 1 << 18};

	if (argc < 4) {
		fprintf(stderr, "usage: load SECONDS SEED DIRECTORY\n");
		return 2;
	}
	if (chdir(argv[3]) || setrlimit(RLIMIT_NOFILE, &files))
		fail(argv[3]);
	end = now() + strtod(argv[1], NULL);
	for (unsigned long i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		pid_t child = fork();

		if (child < 0)
			fail("fork");
		if (child == 0) {
			state = strtoull(argv[2], NULL, 10) * 1000 + i;
			parts[i]();
		}
	}
	/* A part that fails would leave another host than was meant. */
	for (int status; wait(&status) > 0;)
		if (status) {
			fprintf(stderr, "a part failed\n");
			return 1;
		}
	return 0;
}
