/* Asks for rings of packets in blocks of order 10, again and again, as a filter of packets does: the kernel tries each block
 * with __GFP_NORETRY, and takes single pages where there is none.
 *
 *   ringer SECONDS PAUSE_MS BLOCKS
 */
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    double end = now() + (argc > 1 ? atof(argv[1]) : 10);
    int pause_ms = argc > 2 ? atoi(argv[2]) : 100;
    struct tpacket_req req = {.tp_block_size = 4 << 20, .tp_frame_size = 2048};
    long rings = 0;

    req.tp_block_nr = argc > 3 ? atoi(argv[3]) : 8;
    req.tp_frame_nr = req.tp_block_size / req.tp_frame_size * req.tp_block_nr;
    while (now() < end) {
        int s = socket(AF_PACKET, SOCK_RAW, 0);
        if (s < 0) {
            perror("socket");
            return 1;
        }
        if (setsockopt(s, SOL_PACKET, PACKET_RX_RING, &req, sizeof req) == 0)
            rings++;
        else
            perror("ring");
        usleep(pause_ms * 1000);
        close(s);
        usleep(pause_ms * 1000);
    }
    printf("%ld rings\n", rings);
    return 0;
}
