/*
 * Fragments memory, waits, and asks for huge pages until memory is used up.
 *
 *   fragment RESERVE_MIB PROACTIVENESS WAIT_S MOST_REFUSED STOP_MIB
 *
 * It fills memory with small pages until RESERVE_MIB are free, gives back the first 384 of every 512, writes
 * PROACTIVENESS to vm.compaction_proactiveness, waits, and touches one page of each of many places for a huge page, until
 * MOST_REFUSED in a row got a small page or less than STOP_MIB are free (what is refused then says nothing of fragmentation).
 * After each step it runs `phase NAME`, which copies the kernel's counters.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20, FREED = 384 };

static void phase(const char *name)
{
	char command[64];
	snprintf(command, sizeof command, "phase %s", name);
	if (system(command))
		perror(command);
}

static size_t free_bytes(void)
{
	struct sysinfo now;
	sysinfo(&now);
	return now.freeram;
}

static char *map(size_t bytes, int advice)
{
	char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	p = (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (madvise(p, bytes, advice)) {
		perror("madvise");
		exit(1);
	}
	return p;
}

/* Whether a huge page is mapped where only its first page was written: only then is the second one there. */
static int is_huge(int pagemap, const char *p)
{
	uint64_t entry = 0;
	off_t at = ((uintptr_t)p / PAGE + 1) * sizeof entry;
	if (pread(pagemap, &entry, sizeof entry, at) != sizeof entry)
		perror("/proc/self/pagemap");
	return entry >> 63;
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fputs("usage: fragment RESERVE_MIB PROACTIVENESS WAIT_S MOST_REFUSED STOP_MIB\n", stderr);
		return 2;
	}
	size_t reserve = strtoul(argv[1], NULL, 10) << 20, stop = strtoul(argv[5], NULL, 10) << 20;
	int most_refused = atoi(argv[4]), refused = 0, huge = 0, tried = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	struct sysinfo host;
	sysinfo(&host);
	size_t most = host.totalram & ~(size_t)(HUGE - 1), used = 0;
	char *p = map(most, MADV_NOHUGEPAGE);
	for (; used < most && free_bytes() >= reserve; used += HUGE)
		for (size_t i = 0; i < HUGE; i += PAGE)
			p[used + i] = 1;
	phase("filled");
	for (size_t i = 0; i < used; i += HUGE)
		madvise(p + i, FREED * PAGE, MADV_DONTNEED);
	phase("fragmented");
	FILE *setting = fopen("/proc/sys/vm/compaction_proactiveness", "w");
	if (!setting || fprintf(setting, "%s\n", argv[2]) < 0 || fclose(setting))
		perror("compaction_proactiveness");
	sleep((unsigned)atoi(argv[3]));
	phase("waited");
	size_t places = 2 * (free_bytes() / HUGE);
	char *q = map(places * HUGE, MADV_HUGEPAGE);
	for (size_t i = 0; i < places && refused < most_refused && free_bytes() >= stop; i++, tried++) {
		q[i * HUGE] = 1;
		if (is_huge(pagemap, q + i * HUGE)) {
			huge++;
			refused = 0;
		} else {
			refused++;
		}
	}
	phase("allocated");
	printf("filled %zu MiB; %d places tried, %d huge\n", used >> 20, tried, huge);
	return 0;
}
