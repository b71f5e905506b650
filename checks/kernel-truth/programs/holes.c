/*
 * holes MIB TIMES: fills MIB with small pages, gives back three of four at random places, and asks for half as much in huge pages; TIMES over.
 */
#define _GNU_SOURCE
#include "common.h"

#include <sys/mman.h>

static char *map(size_t bytes, int advice)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED || madvise(p, bytes, advice)) {
		perror("map");
		exit(1);
	}
	return p;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fputs("usage: holes MIB TIMES\n", stderr);
		return 2;
	}
	size_t bytes = strtoul(argv[1], NULL, 10) << 20;
	for (int i = 0; i < atoi(argv[2]); i++) {
		char *small = map(bytes, MADV_NOHUGEPAGE), *huge;
		for (size_t k = 0; k < bytes; k += PAGE)
			small[k] = 1;
		for (size_t k = 0; k < bytes; k += PAGE)
			if (random_number() % 4)
				madvise(small + k, PAGE, MADV_DONTNEED);
		huge = map(bytes / 2, MADV_HUGEPAGE);
		for (size_t k = 0; k < bytes / 2; k += PAGE)
			huge[k] = 2;
		munmap(huge, bytes / 2);
		munmap(small, bytes);
		first_tick = now_ns();
		wait_tick(TICKS_A_SECOND);
	}
	return 0;
}
