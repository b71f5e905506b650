// A library that registers functions of a fork before anybody allocates, which allocate themselves; and a program that forks.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LIBRARY
static void allocates(void) {
  void *all[300];
  for (int i = 0; i < 300; i++)
    all[i] = malloc(100 + i * 200);
  for (int i = 0; i < 300; i++)
    free(all[i]);
}

__attribute__((constructor)) static void start(void) { pthread_atfork(allocates, allocates, allocates); }
#else
int main(void) {
  alarm(20);
  free(malloc(10));
  for (int i = 0; i < 10; i++) {
    pid_t child = fork();
    if (child == 0) {
      free(malloc(1000));
      _exit(0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
      return 1;
  }
  puts("holds");
  return 0;
}
#endif
