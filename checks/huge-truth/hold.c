/*
 * Four ways to hold memory, for the experiment in ./run.
 *
 *   hold fragment MIB   maps MIB of small pages, then frees three of every four, so that a quarter of
 *                       every 2 MiB stays; prints "ready" and stays until its standard input ends.
 *   hold lock MIB       the same, and what stays is locked (mlock).
 *   hold small MIB      holds MIB of small pages and frees none of them.
 *   hold huge MAX       takes transparent huge pages one by one until one is refused or MAX is
 *                       reached; prints how many it got, and frees them all by ending.
 *
 * Every one of them asks to be ended first if memory runs out. Huge pages are counted by the kernel
 * (the process's own page map), never assumed from a successful write.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20 };

static char *map(size_t bytes)
{
	char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
}

/*
 * Whether a huge page is mapped where only its first page was written: only then is the second one there.
 */
static int is_huge(int pagemap, const char *p)
{
	uint64_t entry;
	off_t at = ((uintptr_t)p / PAGE + 1) * sizeof entry;
	if (pread(pagemap, &entry, sizeof entry, at) != sizeof entry) {
		perror("/proc/self/pagemap");
		exit(1);
	}
	return entry >> 63;
}

/* Holds small pages; where FREED of every four are given back, a part of every 2 MiB. LOCKS: what stays is locked. */
static void small(size_t mib, int freed, int locks)
{
	size_t bytes = mib << 20;
	char *p = map(bytes);
	if (madvise(p, bytes, MADV_NOHUGEPAGE)) {
		perror("madvise MADV_NOHUGEPAGE");
		exit(1);
	}
	for (size_t i = 0; i < bytes; i += PAGE)
		p[i] = 1;
	for (size_t i = 0; freed && i < bytes; i += 4 * PAGE)
		if (madvise(p + i, (size_t)freed * PAGE, MADV_DONTNEED)) {
			perror("madvise MADV_DONTNEED");
			exit(1);
		}
	/* Only what is there: pages that were given back stay away. */
	if (locks && mlock2(p, bytes, MLOCK_ONFAULT)) {
		perror("mlock2 MLOCK_ONFAULT");
		exit(1);
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
}

static void huge(long max)
{
	long taken = 0;
	char *p = map((size_t)max * HUGE);
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	if (pagemap < 0 || madvise(p, (size_t)max * HUGE, MADV_HUGEPAGE)) {
		perror("pagemap, or madvise MADV_HUGEPAGE");
		exit(1);
	}
	/* Small pages taken after the first refusal would wake kswapd: stop there. */
	while (taken < max) {
		p[(size_t)taken * HUGE] = 1;
		if (!is_huge(pagemap, p + (size_t)taken * HUGE))
			break;
		taken++;
	}
	printf("%ld\n", taken);
}

/* Whoever else runs on this host must not be ended in this one's place. */
static void yield_to_others(void)
{
	FILE *f = fopen("/proc/self/oom_score_adj", "w");
	if (f) {
		fputs("1000", f);
		fclose(f);
	}
}

int main(int argc, char **argv)
{
	yield_to_others();
	if (argc == 3 && !strcmp(argv[1], "fragment"))
		small((size_t)atol(argv[2]), 3, 0);
	else if (argc == 3 && !strcmp(argv[1], "lock"))
		small((size_t)atol(argv[2]), 3, 1);
	else if (argc == 3 && !strcmp(argv[1], "small"))
		small((size_t)atol(argv[2]), 0, 0);
	else if (argc == 3 && !strcmp(argv[1], "huge"))
		huge(atol(argv[2]));
	else {
		fputs("usage: hold fragment MIB | hold lock MIB | hold small MIB | hold huge MAX\n", stderr);
		return 2;
	}
	return 0;
}
