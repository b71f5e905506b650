/*
 * database DIR SECONDS POOL_MIB: what a database asks of memory.
 *
 * A pool of POOL_MIB asks for huge pages; pages of 8 KiB are read into it from the files that `service make` laid in DIR, the
 * first ones more often, and some are written back. Each tick a log is appended to and made durable; each half second a
 * connection (a child with 6 MiB of its own) comes and goes; every third second a sort takes 48 MiB that ask for huge pages.
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 8192, READS_A_TICK = 60, CONNECTION = 6 << 20, SORT = 48 << 20, FILES = 3000 };

static char *map(size_t bytes, int advice)
{
	char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	p = (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	madvise(p, bytes, advice);
	return p;
}

static void connection(const char *pool, size_t pool_bytes)
{
	size_t sum = 0;
	char *own = map(CONNECTION, MADV_NORMAL);
	for (size_t i = 0; i < CONNECTION; i += PAGE)
		own[i] = pool[i * 7 % pool_bytes];
	usleep(300000);
	for (size_t i = 0; i < CONNECTION; i += PAGE)
		sum += (size_t)own[i];
	_exit(sum == 1);
}

/* One of the files, the first ones more often. */
static int open_file(const char *dir)
{
	char path[200];
	double u = (double)(random_number() % 1000000) / 1e6;
	int i = (int)(u * u * FILES);
	snprintf(path, sizeof path, "%s/d%d/f%d", dir, i % 50, i);
	return open(path, O_RDWR);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fputs("usage: database DIR SECONDS POOL_MIB\n", stderr);
		return 2;
	}
	size_t bytes = strtoul(argv[3], NULL, 10) << 20, blocks = bytes / BLOCK, used = 0;
	char path[200], *pool = map(bytes, MADV_HUGEPAGE), *sort = NULL;
	snprintf(path, sizeof path, "%s/log", argv[1]);
	int log = open(path, O_CREAT | O_WRONLY | O_APPEND, 0644);
	first_tick = now_ns();
	for (int i = 0; i < atoi(argv[2]) * TICKS_A_SECOND; i++) {
		for (int k = 0; k < READS_A_TICK; k++) {
			/* The pool fills in a third of the time; then its blocks are replaced. */
			size_t block = used < blocks ? used++ : random_number() % blocks;
			int file = open_file(argv[1]);
			if (file < 0)
				continue;
			off_t at = (off_t)(random_number() % 64 * BLOCK);
			if (pread(file, pool + block * BLOCK, BLOCK, at) > 0 && random_number() % 8 == 0 &&
			    pwrite(file, pool + block * BLOCK, BLOCK, at) < 0)
				perror("block");
			close(file);
		}
		for (size_t k = 0; k < blocks / 400; k++, used += used < blocks)
			pool[(used < blocks ? used : random_number() % blocks) * BLOCK] ^= 1;
		if (write(log, pool, 3 * PAGE) < 0)
			perror("log");
		if (i % 4 == 0)
			fdatasync(log);
		if (i % 10 == 0 && !fork())
			connection(pool, bytes);
		if (i % 60 == 30) {
			sort = map(SORT, MADV_HUGEPAGE);
			for (size_t k = 0; k < SORT; k += PAGE)
				sort[k] = 1;
		}
		if (i % 60 == 50 && sort) {
			munmap(sort, SORT);
			sort = NULL;
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		wait_tick(i);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	printf("database: %zu of %zu blocks used, %d ticks late\n", used, blocks, late_ticks);
	return 0;
}
