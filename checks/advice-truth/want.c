/*
 * want N: asks for a huge page at each of N places, and takes what it gets, a small page where there is none. Prints how many small
 * pages it got, and frees all by ending. It is the first to be ended if memory runs out.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20 };

int main(int argc, char **argv)
{
	size_t places = argc == 2 ? (size_t)atol(argv[1]) : 0, small = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	FILE *first = fopen("/proc/self/oom_score_adj", "w");
	if (!places || pagemap < 0 || !first) {
		fputs("usage: want N\n", stderr);
		return 2;
	}
	fputs("1000", first);
	fclose(first);
	char *p = mmap(NULL, (places + 1) * HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	p = (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (madvise(p, places * HUGE, MADV_HUGEPAGE)) {
		perror("madvise MADV_HUGEPAGE");
		return 1;
	}
	for (size_t i = 0; i < places; i++) {
		uint64_t second = 0;
		p[i * HUGE] = 1;
		/* Only a huge page has its second page there, too. */
		off_t at = ((uintptr_t)(p + i * HUGE) / PAGE + 1) * sizeof second;
		if (pread(pagemap, &second, sizeof second, at) == sizeof second && !(second >> 63))
			small++;
	}
	printf("%zu\n", small);
	return 0;
}
