/*
 * churn SECONDS: forty children a second that touch some pages and end, and waves of four thousand empty files in memory.
 */
#define _GNU_SOURCE
#include "common.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch_and_end(void)
{
	size_t bytes = 64 * PAGE;
	char *p = malloc(bytes);
	memset(p, 1, bytes);
	_exit(0);
}

int main(int argc, char **argv)
{
	char path[64];
	int made = 0;
	if (argc != 2) {
		fputs("usage: churn SECONDS\n", stderr);
		return 2;
	}
	mkdir("/run/churn", 0755);
	first_tick = now_ns();
	for (int i = 0; i < atoi(argv[1]) * TICKS_A_SECOND; i++) {
		for (int k = 0; k < 2; k++)
			if (!fork())
				touch_and_end();
		for (int k = 0; k < 400; k++, made++) {
			snprintf(path, sizeof path, "/run/churn/%d", made);
			close(open(path, O_CREAT | O_WRONLY, 0644));
		}
		for (int k = made - 4000; made % 4000 == 0 && k < made; k++) {
			snprintf(path, sizeof path, "/run/churn/%d", k);
			unlink(path);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		wait_tick(i);
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	return 0;
}
