/*
 * The programs of the host that samples/make/fragmented records. One file; the name that it is called by says which part it plays.
 *
 *   broker PIPES BURSTS     pipes with a few pages in each, of which one page stays: kernel memory that cannot be moved, strewn
 *   database MIB ROUNDS     asks for huge pages, takes the small ones that it gets instead, and frees all after each round
 *   reader FILE MIB SECONDS reads a file from end to end, so much a second
 *   files DIR COUNT         many small files: entries of directories, and inodes
 *   receiver TIMES          lists of multicast sources, each a block of order 4 that is waited for (GFP_KERNEL)
 *   queue COUNT             messages of 4 KiB that nobody fetches: slabs of order 3 while there are such blocks
 *   router DEVICE COUNT     a growing table of neighbours, in blocks of order 3 and more that are not waited for (GFP_ATOMIC)
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, HUGE = 2 << 20, A_PIPE = 8 };

static void rest(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };
	nanosleep(&t, NULL);
}

static struct timespec begun;

/* Waits until so long after the program's beginning, so that a slow machine's host is the same. */
static void until(long ms)
{
	struct timespec t = { begun.tv_sec + (begun.tv_nsec / 1000000 + ms) / 1000, (begun.tv_nsec / 1000000 + ms) % 1000 * 1000000 };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int broker(long pipes, long bursts)
{
	static char data[A_PIPE * PAGE];
	int (*ends)[2] = calloc((size_t)pipes, sizeof *ends);
	for (long i = 0; i < pipes; i++)
		if (pipe(ends[i]) || fcntl(ends[i][1], F_SETPIPE_SZ, A_PIPE * PAGE) < 0)
			return fail("pipe");
	for (long burst = 0; burst < bursts; burst++) {
		until(burst * 18000);
		for (long i = 0; i < pipes; i++) {
			if (write(ends[i][1], data, (size_t)((A_PIPE - (burst > 0)) * PAGE)) < 0)
				return fail("write");
			if (i % 200 == 0)
				rest(20);
		}
		until(burst * 18000 + 10000);
		/* All but the last page of each, so that no eight pages in a row are free where they were. */
		for (long i = 0; i < pipes; i++)
			if (read(ends[i][0], data, (A_PIPE - 1) * PAGE) < 0)
				return fail("read");
	}
	pause();
	return 0;
}

static int database(long mib, long rounds)
{
	size_t bytes = (size_t)mib << 20, pool = 32 << 20;
	char *small = mmap(NULL, pool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (small == MAP_FAILED || madvise(small, pool, MADV_NOHUGEPAGE))
		return fail("mmap");
	memset(small, 1, pool);
	for (long round = 0; round < rounds; round++) {
		char *p = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			return fail("mmap");
		/* Every second small page goes before the last rounds: what is left can be moved together. */
		for (size_t at = 0; round == rounds - 2 && at < pool; at += 2 * PAGE)
			madvise(small + at, PAGE, MADV_DONTNEED);
		char *first = (char *)(((uintptr_t)p + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
		for (size_t at = 0; at < bytes; at += HUGE) {
			for (size_t i = 0; i < 16; i++)
				first[at + i * PAGE] = 1;
			rest(10);
		}
		until((round + 1) * 2500);
		munmap(p, bytes + HUGE);
	}
	pause();
	return 0;
}

static int reader(const char *file, long mib, long seconds)
{
	static char data[1 << 20];
	int f = open(file, O_RDONLY);
	if (f < 0)
		return fail(file);
	for (long i = 0; i < mib * seconds; i++) {
		ssize_t got = read(f, data, sizeof data);
		if (got < 0)
			return fail(file);
		if (got == 0)
			lseek(f, 0, SEEK_SET);
		until((i + 1) * 1000 / mib);
	}
	return 0;
}

static int files(const char *dir, long count)
{
	char name[256];
	for (long i = 0; i < count; i++) {
		if (i % 200 == 0) {
			snprintf(name, sizeof name, "%s/%ld", dir, i / 200);
			mkdir(name, 0755);
			rest(20);
		}
		snprintf(name, sizeof name, "%s/%ld/%ld", dir, i / 200, i);
		int f = open(name, O_CREAT | O_WRONLY, 0644);
		if (f < 0)
			return fail(name);
		close(f);
	}
	return 0;
}

static int receiver(long times)
{
	/* The copy of the request fits into 32 KiB, what the kernel makes of it does not. */
	enum { SOURCES = 8188 };
	struct ip_msfilter *filter = calloc(1, IP_MSFILTER_SIZE(SOURCES));
	struct ip_mreq group = { .imr_multiaddr.s_addr = inet_addr("239.1.1.1"), .imr_interface.s_addr = inet_addr("127.0.0.1") };
	filter->imsf_multiaddr = group.imr_multiaddr;
	filter->imsf_interface = group.imr_interface;
	filter->imsf_fmode = MCAST_EXCLUDE;
	filter->imsf_numsrc = SOURCES;
	for (uint32_t i = 0; i < SOURCES; i++)
		filter->imsf_slist[i].s_addr = htonl(0x0a000001 + i);
	for (long i = 0; i < times; i++) {
		int s = socket(AF_INET, SOCK_DGRAM, 0);
		if (s < 0 || setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group))
			return fail("multicast");
		if (setsockopt(s, IPPROTO_IP, IP_MSFILTER, filter, IP_MSFILTER_SIZE(SOURCES)))
			perror("source filter");
		rest(200);
	}
	pause();
	return 0;
}

static int queue(long count)
{
	struct { long type; char text[4000]; } message = { .type = 1 };
	int q = msgget(IPC_PRIVATE, 0600);
	for (long i = 0; i < count; i++) {
		if (msgsnd(q, &message, sizeof message.text, 0))
			return fail("msgsnd");
		if (i % 20 == 0)
			rest(10);
	}
	pause();
	return 0;
}

/* Whether a block of an order or above is free outside zone DMA, whose last pages are for requests that can use no others. */
static int has_blocks(int order)
{
	char line[512];
	long all = 0;
	FILE *f = fopen("/proc/buddyinfo", "r");
	while (f && fgets(line, sizeof line, f)) {
		if (strstr(line, " DMA "))
			continue;
		char *zone = strstr(line, "zone"), *at = zone ? zone + strcspn(zone, " ") : line;
		at += strspn(at, " ");
		at += strcspn(at, " ");
		for (int i = 0; *at && *at != '\n'; i++) {
			long n = strtol(at, &at, 10);
			all += i >= order ? n : 0;
			at += strspn(at, " ");
		}
	}
	if (f)
		fclose(f);
	return all > 0;
}

static int router(const char *device, long count)
{
	struct {
		struct nlmsghdr head;
		struct ndmsg entry;
		struct rtattr address;
		uint32_t ip;
		struct rtattr link;
		unsigned char mac[8];
	} ask = {
		.head = { sizeof ask - 2, RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK, 0, 0 },
		.entry = { .ndm_family = AF_INET, .ndm_ifindex = (int)if_nametoindex(device), .ndm_state = NUD_PERMANENT },
		.address = { RTA_LENGTH(4), NDA_DST },
		.link = { RTA_LENGTH(6), NDA_LLADDR },
	};
	struct { struct nlmsghdr head; struct nlmsgerr error; char more[256]; } answer;
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	long refused = 0;
	for (long i = 0; i < count; i++) {
		ask.ip = htonl(0x0a000001 + (uint32_t)i);
		if (send(s, &ask, ask.head.nlmsg_len, 0) < 0 || recv(s, &answer, sizeof answer, 0) < 0)
			return fail("netlink");
		if (answer.error.error && !refused++)
			fprintf(stderr, "neighbour %ld: %s\n", i, strerror(-answer.error.error));
		/* From 2,048 neighbours on the table asks for 32 KiB with each until it gets them. It may well ask when there are none. */
		for (int tries = 0; i == 2040 && tries < 4000 && has_blocks(3); tries++)
			rest(1);
	}
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	const char *part = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	long n[4] = { 0 };
	clock_gettime(CLOCK_MONOTONIC, &begun);
	for (int i = 1; i < argc && i < 4; i++)
		n[i] = atol(argv[i]);
	if (!strcmp(part, "broker") && argc == 3)
		return broker(n[1], n[2]);
	if (!strcmp(part, "database") && argc == 3)
		return database(n[1], n[2]);
	if (!strcmp(part, "reader") && argc == 4)
		return reader(argv[1], n[2], n[3]);
	if (!strcmp(part, "files") && argc == 3)
		return files(argv[1], n[2]);
	if (!strcmp(part, "receiver") && argc == 2)
		return receiver(n[1]);
	if (!strcmp(part, "queue") && argc == 2)
		return queue(n[1]);
	if (!strcmp(part, "router") && argc == 3)
		return router(argv[1], n[2]);
	fputs("which part? see the head of parts.c\n", stderr);
	return 2;
}
