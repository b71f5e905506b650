/*
 * A small host of services, each a process, in fixed steps of time.
 *
 *   service make DIR MIB             makes the files that `files` serves: 16 KiB to 4 MiB each
 *   service files DIR SECONDS MIB    a file server: in each tick three files are read (the first ones more often), one is written anew
 *   service slab DIR SECONDS         growing slabs: small files made, looked up and removed in waves; sockets and pipes likewise
 *   service store SECONDS MIB        a store in memory: values in arenas of 32 MiB that ask for huge pages; it gives back single pages,
 *                                    every 15 s a forked child reads all of it for 3 s, and at half time it begins anew
 *   service anon SECONDS MIB RATE    touches RATE pages a second of MIB of small anonymous pages
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char buffer[4 << 20];
static int files;

static size_t file_bytes(int i)
{
	uint64_t x = ((uint64_t)i * 2654435761u) % 1000;
	if (x < 600)
		return 16384 + x % 16 * PAGE;
	return x < 950 ? 262144 + x % 64 * PAGE : sizeof buffer;
}

static void file_path(char *path, const char *dir, int i)
{
	snprintf(path, 200, "%s/d%d/f%d", dir, i % 50, i);
}

static void make_files(const char *dir, size_t mib)
{
	char path[200];
	size_t made = 0;
	mkdir(dir, 0755);
	for (files = 0; made < mib << 20; files++) {
		struct stat found;
		size_t bytes = file_bytes(files);
		snprintf(path, sizeof path, "%s/d%d", dir, files % 50);
		mkdir(path, 0755);
		file_path(path, dir, files);
		made += bytes;
		if (!stat(path, &found) && (size_t)found.st_size >= bytes)
			continue;
		int f = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
		if (write(f, buffer, bytes) < 0)
			perror(path);
		close(f);
	}
}

static void serve_files(const char *dir, int seconds, size_t mib)
{
	char path[200];
	uint64_t read_bytes = 0;
	make_files(dir, mib);
	first_tick = now_ns();
	for (int i = 0; i < seconds * TICKS_A_SECOND; i++) {
		for (int k = 0; k < 3; k++) {
			double u = (double)(random_number() % 1000000) / 1e6;
			file_path(path, dir, (int)(u * u * files));
			int f = open(path, O_RDONLY);
			ssize_t got;
			while (f >= 0 && (got = read(f, buffer, 262144)) > 0)
				read_bytes += (uint64_t)got;
			close(f);
		}
		int which = (int)(random_number() % (uint64_t)files);
		size_t bytes = file_bytes(which);
		file_path(path, dir, which);
		int f = open(path, O_WRONLY | O_TRUNC);
		if ((bytes < sizeof buffer || random_number() % 4 == 0) && write(f, buffer, bytes) < 0)
			perror(path);
		if (random_number() % 20 == 0)
			fsync(f);
		close(f);
		wait_tick(i);
	}
	printf("files %d, %lu MiB read, %d ticks late\n", files, read_bytes >> 20, late_ticks);
}

static void grow_slabs(const char *dir, int seconds)
{
	static int pairs[8000][2];
	char path[200];
	int open_pairs = 0, made = 0, removed = 0;
	for (int i = 0; i < seconds * TICKS_A_SECOND; i++) {
		for (int k = 0; k < 8; k++, made++) {
			snprintf(path, sizeof path, "%s/s%d", dir, made % 64);
			if (made < 64)
				mkdir(path, 0755);
			snprintf(path, sizeof path, "%s/s%d/x%d", dir, made % 64, made);
			int f = open(path, O_CREAT | O_WRONLY, 0644);
			if (f >= 0 && write(f, buffer, 500) < 0)
				perror(path);
			close(f);
		}
		if (made - removed > 4000)
			for (int k = 0; k < 1500; k++, removed++) {
				snprintf(path, sizeof path, "%s/s%d/x%d", dir, removed % 64, removed);
				unlink(path);
			}
		if (i % 40 == 39)
			for (int k = 0; k < 1000; k++) {
				struct stat found;
				int which = removed + (int)(random_number() % (uint64_t)(made - removed));
				snprintf(path, sizeof path, "%s/s%d/x%d", dir, which % 64, which);
				stat(path, &found);
				snprintf(path, sizeof path, "%s/none%d", dir, (int)(random_number() % 100000));
				stat(path, &found);
			}
		for (int k = 0; k < 6 && open_pairs < 7900; k++, open_pairs++) {
			int *pair = pairs[open_pairs];
			if (random_number() & 1 ? socketpair(AF_UNIX, SOCK_STREAM, 0, pair) : pipe(pair))
				break;
			if (write(pair[1], buffer, 3000) < 0)
				perror("pair");
		}
		if (open_pairs > 3000)
			for (int k = 0; k < 2000; k++) {
				int which = (int)(random_number() % (uint64_t)open_pairs);
				close(pairs[which][0]);
				close(pairs[which][1]);
				open_pairs--;
				memcpy(pairs[which], pairs[open_pairs], sizeof pairs[which]);
			}
		wait_tick(i);
	}
	printf("%d small files made, %d pairs open, %d ticks late\n", made, open_pairs, late_ticks);
}

enum { ARENA = 32 << 20, MOST_ARENAS = 256 };
static char *arenas[MOST_ARENAS];

static char *new_arena(void)
{
	char *p = mmap(NULL, ARENA + HUGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *begin = (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
	if (begin > p)
		munmap(p, (size_t)(begin - p));
	munmap(begin + ARENA, (size_t)(p + HUGE - begin));
	madvise(begin, ARENA, MADV_HUGEPAGE);
	return begin;
}

/* The child of a store: reads all of it for three seconds, as one that writes it to disk does. */
static void read_all(size_t used)
{
	uint64_t end = now_ns() + 3000000000u;
	volatile uint64_t sum = 0;
	while (now_ns() < end) {
		for (size_t i = 0; i < used; i += PAGE)
			if (arenas[i / ARENA])
				sum += (uint64_t)arenas[i / ARENA][i % ARENA];
		usleep(200000);
	}
	_exit(0);
}

static void store(int seconds, size_t mib)
{
	int ticks = seconds * TICKS_A_SECOND;
	size_t room = mib / 32 * ARENA, used = 0, a_tick = room / (size_t)(ticks / 3);
	pid_t child = 0;
	for (int i = 0; i < ticks; i++) {
		if (i == ticks / 2) {
			for (size_t k = 0; k < MOST_ARENAS; k++)
				if (arenas[k])
					munmap(arenas[k], ARENA);
			memset(arenas, 0, sizeof arenas);
			used = 0;
		}
		for (size_t rest = a_tick; rest && used < room;) {
			char **arena = &arenas[used / ARENA];
			if (!*arena)
				*arena = new_arena();
			size_t bytes = (size_t)64 << random_number() % 8;
			if (bytes > rest)
				bytes = rest;
			if (bytes > ARENA - used % ARENA)
				bytes = ARENA - used % ARENA;
			memset(*arena + used % ARENA, i, bytes);
			used += bytes;
			rest -= bytes;
		}
		if (used > ARENA)
			for (int k = 0; k < 600; k++) {
				size_t at = random_number() % used;
				arenas[at / ARENA][at % ARENA] ^= 1;
			}
		if (i % 20 == 10 && used > (size_t)4 * ARENA) {
			size_t at = random_number() % (used - PAGE) & ~(size_t)(PAGE - 1);
			for (size_t k = 0; k < 64; k++) {
				size_t page = (at + k * 2 * PAGE) % used;
				madvise(arenas[page / ARENA] + (page % ARENA & ~(size_t)(PAGE - 1)), PAGE, MADV_DONTNEED);
			}
		}
		if (i % 300 == 200) {
			child = fork();
			if (!child)
				read_all(used);
		}
		wait_tick(i);
		if (child > 0)
			waitpid(child, NULL, WNOHANG);
	}
	printf("store of %zu MiB, %d ticks late\n", used >> 20, late_ticks);
}

static void anon(int seconds, size_t mib, int rate)
{
	size_t bytes = mib << 20, used = 0;
	int a_tick = rate / TICKS_A_SECOND;
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	madvise(p, bytes, MADV_NOHUGEPAGE);
	for (int i = 0; i < seconds * TICKS_A_SECOND; i++) {
		for (int k = 0; k < a_tick; k++) {
			if (used < bytes && k < a_tick * 3 / 4) {
				p[used] = 1;
				used += PAGE;
			} else if (used) {
				p[random_number() % (used / PAGE) * PAGE]++;
			}
		}
		wait_tick(i);
	}
	printf("anonymous memory of %zu MiB, %d ticks late\n", used >> 20, late_ticks);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	memset(buffer, 7, sizeof buffer);
	first_tick = now_ns();
	if (!strcmp(what, "make") && argc == 4)
		make_files(argv[2], strtoul(argv[3], NULL, 10));
	else if (!strcmp(what, "files") && argc == 5)
		serve_files(argv[2], atoi(argv[3]), strtoul(argv[4], NULL, 10));
	else if (!strcmp(what, "slab") && argc == 4)
		grow_slabs(argv[2], atoi(argv[3]));
	else if (!strcmp(what, "store") && argc == 4)
		store(atoi(argv[2]), strtoul(argv[3], NULL, 10));
	else if (!strcmp(what, "anon") && argc == 5)
		anon(atoi(argv[2]), strtoul(argv[3], NULL, 10), atoi(argv[4]));
	else {
		fputs("usage: service make|files|slab|store|anon ... (see the head of service.c)\n", stderr);
		return 2;
	}
	return 0;
}
