/*
 * Holds memory of a kind until its input ends, and says so when it does:
 *
 *   hold KIND MIB
 *
 * pipe    pages in pipes: the kernel's, in no counter
 * packet  rings of packet sockets: blocks of a driver's kind that nobody reads, in no counter
 * memfd   a memfd without a mapping; mapped: the same with one
 * place   anonymous memory of which 0, 1, 7, 100, 511 and 512 of 512 pages are touched, range by range; at a line of input
 *         MADV_COLLAPSE is called for each range, and what smaps has then is printed
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB (1ul << 20)
#define HUGE (2 * MIB)
#define COLLAPSE 25

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void hold_pipe(void)
{
	static char page[MIB];
	int ends[2];

	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, MIB) < 0)
		fail("pipe");
	for (unsigned long done = 0; done < MIB;) {
		ssize_t n = write(ends[1], page, MIB - done);

		if (n <= 0)
			fail("write");
		done += n;
	}
}

static void hold_packet(void)
{
	struct tpacket_req ring = {
		.tp_block_size = 64 << 10, .tp_block_nr = 16,
		.tp_frame_size = 2048, .tp_frame_nr = 16 * 32,
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring)))
		fail("packet");
}

static void hold_memfd(unsigned long mib, int mapped)
{
	int fd = memfd_create("held", 0);
	char *at;

	if (fd < 0 || posix_fallocate(fd, 0, mib * MIB))
		fail("memfd");
	if (!mapped)
		return;
	at = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		fail("mmap");
	memset(at, 1, mib * MIB);
}

static unsigned long mapped_huge(void)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long kib, sum = 0;

	while (smaps && fgets(line, sizeof(line), smaps))
		if (sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
			sum += kib;
	return sum / 2048;
}

static void place(unsigned long mib)
{
	static const unsigned touched[] = {0, 1, 7, 100, 511, 512};
	char *all = mmap(NULL, mib * MIB + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *begin = (char *)(((unsigned long)all + HUGE - 1) / HUGE * HUGE);
	unsigned long ranges = mib * MIB / HUGE;

	if (all == MAP_FAILED)
		fail("mmap");
	for (unsigned long i = 0; i < ranges; i++)
		for (unsigned long k = 0; k < touched[i % 6]; k++)
			begin[i * HUGE + k * 4096] = 1;
	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		exit(1);
	for (unsigned long i = 0; i < ranges; i++)
		madvise(begin + i * HUGE, HUGE, COLLAPSE);
	printf("%lu\n", mapped_huge());
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	unsigned long mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
	struct rlimit files = {4096, 4096};

	setrlimit(RLIMIT_NOFILE, &files);
	if (!strcmp(kind, "place")) {
		place(mib);
	} else if (!strncmp(kind, "memfd", 5)) {
		hold_memfd(mib, 0);
	} else if (!strcmp(kind, "mapped")) {
		hold_memfd(mib, 1);
	} else {
		for (unsigned long i = 0; i < mib; i++)
			strcmp(kind, "packet") ? hold_pipe() : hold_packet();
	}
	if (strcmp(kind, "place")) {
		puts("ready");
		fflush(stdout);
	}
	while (getchar() != EOF)
		;
	return 0;
}
