// What a program may rely on of the C library's allocation calls. Each part ends the program with a message if it does not hold.
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                            \
  do {                                                                         \
    if (!(what)) {                                                             \
      fprintf(stderr, "line %d: %s\n", __LINE__, #what);                       \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static uint64_t next(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return *seed >> 33;
}

// A byte that depends on the block and the place.
static unsigned char mark(const void *of, size_t salt) { return (unsigned char)((salt * 31) ^ 0x5a); }

static void fill(unsigned char *p, size_t n, size_t salt) { memset(p, mark(p, salt), n); }

static int is_filled(const unsigned char *p, size_t n, size_t salt) {
  unsigned char m = mark(p, salt);
  return n == 0 || (p[0] == m && memcmp(p, p + 1, n - 1) == 0);
}

static int is_filled_with(const unsigned char *p, size_t n, int with) {
  return p[0] == with && memcmp(p, p + 1, n - 1) == 0;
}

static void sizes(void) {
  for (size_t n = 0; n < 200000; n += n < 5000 ? 1 : 997) {
    unsigned char *p = malloc(n);
    CHECK(p && (uintptr_t)p % 16 == 0);
    CHECK(malloc_usable_size(p) >= n);
    fill(p, malloc_usable_size(p), n);
    unsigned char *q = malloc(n);
    fill(q, n, n + 1);
    CHECK(is_filled(p, n, n) && is_filled(q, n, n + 1));
    free(p);
    unsigned char *z = calloc(n ? n : 1, 1);
    for (size_t i = 0; i < n; i++)
      CHECK(z[i] == 0);
    free(z);
    free(q);
  }
  CHECK(malloc_usable_size(NULL) == 0);
  free(NULL);
}

static void large(void) {
  for (size_t n = 100000; n < (size_t)300 << 20; n = n * 7 / 4) {
    unsigned char *z = calloc(n, 1);
    CHECK(z && z[0] == 0 && z[n / 2] == 0 && z[n - 1] == 0);
    fill(z, n, n);
    z = realloc(z, n * 2);
    CHECK(z && is_filled(z, n, n));
    z = realloc(z, n / 3);
    CHECK(z && is_filled(z, n / 3, n));
    z = realloc(z, n * 3);
    CHECK(z && is_filled(z, n / 3, n));
    free(z);
  }
}

static void resizes(void) {
  uint64_t seed = 1;
  size_t n = 1;
  unsigned char *p = realloc(NULL, n);
  fill(p, n, 9);
  for (int i = 0; i < 20000; i++) {
    size_t to = 1 + next(&seed) % (i % 50 == 0 ? 3000000 : 9000);
    p = realloc(p, to);
    CHECK(p && is_filled(p, n < to ? n : to, 9));
    n = to;
    fill(p, n, 9);
  }
  CHECK(realloc(p, 0) == NULL);
}

static void aligned(void) {
  for (size_t align = 8; align <= (size_t)64 << 20; align *= 2) {
    size_t some[] = {0, 1, align / 2, align, align + 1, 3 * align, 100, 5000, 70000};
    for (int i = 0; i < 9; i++) {
      void *p = NULL;
      CHECK(posix_memalign(&p, align, some[i]) == 0 && (uintptr_t)p % align == 0);
      void *q = aligned_alloc(align, some[i]);
      CHECK(q && q != p && (uintptr_t)q % align == 0);
      fill(p, some[i], 1);
      fill(q, some[i], 2);
      CHECK(is_filled(p, some[i], 1));
      p = realloc(p, some[i] + 100000);
      CHECK(is_filled(p, some[i], 1));
      free(p);
      free(q);
    }
  }
  CHECK((uintptr_t)valloc(5) % 4096 == 0);
  void *p = pvalloc(5);
  CHECK((uintptr_t)p % 4096 == 0 && malloc_usable_size(p) >= 4096);
}

static void refusals(void) {
  volatile size_t much = SIZE_MAX / 2;
  errno = 0;
  CHECK(malloc(much) == NULL && errno == ENOMEM);
  errno = 0;
  CHECK(calloc(much, 4) == NULL && errno == ENOMEM);
  char *p = malloc(10);
  strcpy(p, "as it was");
  errno = 0;
  CHECK(realloc(p, much) == NULL && errno == ENOMEM && strcmp(p, "as it was") == 0);
  CHECK(reallocarray(p, much, 4) == NULL && strcmp(p, "as it was") == 0);
  void *q = NULL;
  CHECK(posix_memalign(&q, 24, 1) == EINVAL && posix_memalign(&q, 4, 1) == EINVAL);
  errno = 0;
  CHECK(memalign(SIZE_MAX, 1) == NULL && errno == EINVAL);
}

// As glibc: an odd alignment is raised to the next power of two.
static void odd_alignments(void) {
  for (size_t align = 0; align < 10000; align += align < 70 ? 1 : 77) {
    unsigned char *p = memalign(align, 100);
    size_t power = 1;
    while (power < align)
      power *= 2;
    CHECK(p && (uintptr_t)p % power == 0);
    fill(p, 100, align);
    free(p);
  }
}

// The numbers follow what the program does.
static void info(void) {
  enum { COUNT = 10000, SIZE = 3000, LARGE = 64 << 20 };
  static void *all[COUNT];
  struct mallinfo2 before = mallinfo2();
  CHECK(before.arena > 0 && before.uordblks + before.fordblks == before.arena);
  for (int i = 0; i < COUNT; i++)
    memset(all[i] = malloc(SIZE), 1, SIZE);
  void *large = malloc(LARGE);
  struct mallinfo2 full = mallinfo2();
  CHECK(full.uordblks >= before.uordblks + (size_t)COUNT * SIZE);
  CHECK(full.arena >= full.uordblks && full.uordblks + full.fordblks == full.arena);
  CHECK(full.hblks == before.hblks + 1 && full.hblkhd >= before.hblkhd + LARGE);
  for (int i = 0; i < COUNT; i++)
    free(all[i]);
  free(large);
  struct mallinfo2 after = mallinfo2();
  CHECK(after.uordblks + (size_t)COUNT * SIZE * 9 / 10 < full.uordblks);
  CHECK(after.hblks == before.hblks && after.hblkhd == before.hblkhd);
  malloc_trim(0);
  CHECK(mallinfo2().arena + (size_t)COUNT * SIZE / 2 < full.arena);
  CHECK((size_t)mallinfo().uordblks == mallinfo2().uordblks);
}

// Memory of zeros is that, whatever the heap has of earlier users.
static void zeros(void) {
  static const size_t sizes[] = {1, 17, 100, 1000, 5000, 30000, 40000, 100000, 1 << 20, 3 << 20, 20 << 20, 40 << 20};
  for (int round = 0; round < 20; round++)
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      size_t n = sizes[i];
      unsigned char *all[6] = {0};
      int count = n > 1 << 20 ? 1 : 6;
      for (int k = 0; k < count; k++) {
        all[k] = calloc(1, n);
        CHECK(all[k] && is_filled_with(all[k], n, 0));
        memset(all[k], 0xa5, malloc_usable_size(all[k]));
      }
      for (int k = 0; k < count; k++)
        free(all[k]);
      if (round % 5 == 4)
        malloc_trim(0);
    }
}

// Memory that is free lies in the magazine of a thread, in the depot, or in its slab: a second free is found in each.
static void free_again(int size, int others) {
  static void *all[5000];
  void *p = malloc(size);
  for (int i = 0; i < others; i++)
    all[i] = malloc(size);
  free(p);
  for (int i = 0; i < others; i++)
    free(all[i]);
  free(p);
}

static void *frees(void *p) {
  free(p);
  return NULL;
}

// Another thread freed it, and ended or not.
static void free_again_here(void) {
  pthread_t thread;
  void *p = malloc(100);
  CHECK(pthread_create(&thread, NULL, frees, p) == 0);
  pthread_join(thread, NULL);
  free(p);
}

// The system had the pages of free memory back, and they are a slab again: an object that nobody has since is free still.
// Near: one that came to the magazine with another; else one that is in the slab.
static void free_again_reopened(size_t size, int near) {
  size_t count = 16000000 / size;
  char **all = malloc(count * sizeof *all), *again = NULL;
  for (size_t i = 0; i < count; i++)
    memset(all[i] = malloc(size), 1, size);
  for (size_t i = 0; i < count; i++)
    free(all[i]);
  malloc_trim(0);
  char *one = malloc(size);
  for (size_t i = 0; i < count; i++)
    if (near ? all[i] == one + malloc_usable_size(one)
             : all[i] > one && (uintptr_t)all[i] / 4096 == (uintptr_t)one / 4096 && all[i] > again)
      again = all[i];
  CHECK(again);
  free(again);
}

// Each second object is free, and lies in its slab; those before them are written to, with a byte too much.
static void write_behind(size_t size) {
  enum { COUNT = 2000 };
  static char *all[COUNT];
  for (int i = 0; i < COUNT; i++)
    all[i] = malloc(size);
  for (int i = 0; i < COUNT; i += 2)
    free(all[i]);
  malloc_trim(0);
  for (int i = 1; i < COUNT; i += 2)
    for (int k = 0; k < COUNT; k += 2)
      if (all[k] == all[i] + malloc_usable_size(all[i]))
        *all[k] = 0x41;
  for (int i = 0; i < COUNT; i += 2)
    all[i] = malloc(size);
}

// Behind the last object of a slab there is less than one more, which nobody ever gets.
static void free_tail(size_t size) {
  enum { COUNT = 400 };
  static char *all[COUNT];
  size_t usable = 0;
  for (int i = 0; i < COUNT; i++)
    usable = malloc_usable_size(all[i] = malloc(size));
  for (int i = 0; i < COUNT; i++) {
    char *tail = all[i] + usable, *next = NULL;
    for (int k = 0; k < COUNT; k++)
      if (all[k] > all[i] && (!next || all[k] < next))
        next = all[k];
    if (!next || next - all[i] > 2 * usable || (next - all[i]) % usable == 0)
      continue;
    free(tail);
    return;
  }
  CHECK(!"a tail");
}

// Blocks that threads give each other: a place holds a block, whose first word is its length.
#define PLACES 4096
static _Atomic(size_t *) places[PLACES];

static void *exchange(void *of) {
  uint64_t seed = (uintptr_t)of * 77 + 5;
  for (int i = 0; i < 20000; i++) {
    size_t n = sizeof(size_t) + next(&seed) % (i % 100 == 0 ? 100000 : 600);
    size_t *p = malloc(n);
    CHECK(p);
    *p = n;
    fill((unsigned char *)(p + 1), n - sizeof *p, n);
    size_t *old = atomic_exchange(&places[next(&seed) % PLACES], p);
    if (old) {
      CHECK(is_filled((unsigned char *)(old + 1), *old - sizeof *old, *old));
      free(old);
    }
  }
  return NULL;
}

static void threads(int count, void *(*f)(void *)) {
  pthread_t all[64];
  for (int i = 0; i < count; i++)
    CHECK(pthread_create(&all[i], NULL, f, (void *)(uintptr_t)i) == 0);
  for (int i = 0; i < count; i++)
    pthread_join(all[i], NULL);
}

// A free leaves errno as it is, though the thread waits for others in it, or calls the system.
static void *frees_with_errno(void *of) {
  uint64_t seed = (uintptr_t)of;
  for (int round = 0; round < 4000; round++) {
    void *all[40];
    for (int i = 0; i < 40; i++)
      all[i] = malloc(round % 100 == 99 && i < 2 ? 40 << 20 : i < 20 ? 500 : 40000 + next(&seed) % 200000);
    for (int i = 0; i < 40; i++) {
      errno = 199;
      free(all[i]);
      CHECK(errno == 199);
    }
    void *p;
    errno = 199;
    CHECK(posix_memalign(&p, 64, 40000 + next(&seed) % 200000) == 0 && errno == 199);
    free(p);
  }
  return NULL;
}

static long resident(void) {
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%*d %ld", &pages) == 1);
  fclose(f);
  return pages;
}

static void *short_thread(void *of) {
  void *p[100];
  for (int i = 0; i < 100; i++)
    p[i] = malloc(16 + i * 40);
  for (int i = 0; i < 100; i++)
    free(p[i]);
  return of;
}

static void many_threads(void) {
  for (int i = 0; i < 20; i++)
    threads(30, short_thread);
  long before = resident();
  for (int i = 0; i < 100; i++)
    threads(30, short_thread);
  long grown = resident() - before;
  if (grown > 1000) {
    fprintf(stderr, "3000 threads that ended left %ld pages\n", grown);
    exit(1);
  }
}

static atomic_int ended;

static void *until_ended(void *of) {
  while (!ended)
    exchange(of);
  return NULL;
}

// A child of a program whose threads are in the middle of allocations has a heap that works.
static void forks(void) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++)
    CHECK(pthread_create(&all[i], NULL, until_ended, (void *)(uintptr_t)i) == 0);
  for (int i = 0; i < 200; i++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(60);
      exchange((void *)99);
      threads(3, short_thread);
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  ended = 1;
  for (int i = 0; i < 4; i++)
    pthread_join(all[i], NULL);
}

static void *until_ended_trims(void *of) {
  while (!ended) {
    threads(2, short_thread);
    malloc_trim(0);
  }
  return of;
}

// Whatever trims in the parent at that moment, nothing of it is left under way in the child.
static void forks_and_trims(void) {
  pthread_t all[2];
  for (int i = 0; i < 2; i++)
    CHECK(pthread_create(&all[i], NULL, until_ended_trims, NULL) == 0);
  for (int i = 0; i < 100; i++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(60);
      threads(20, short_thread);
      malloc_trim(0);
      threads(20, short_thread);
      _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  ended = 1;
  for (int i = 0; i < 2; i++)
    pthread_join(all[i], NULL);
}

static void trim(void) {
  enum { COUNT = 200000 };
  void **all = malloc(COUNT * sizeof *all);
  for (int i = 0; i < COUNT; i++)
    memset(all[i] = malloc(1000), 1, 1000);
  long full = resident();
  for (int i = 0; i < COUNT; i++)
    free(all[i]);
  CHECK(malloc_trim(0) == 1);
  CHECK(resident() < full - 40000);
  free(all);
}

// All pieces of a size that can be had, as a chain. Returns how many.
static size_t take_all(size_t size, void **last) {
  size_t count = 0;
  *last = NULL;
  for (void **p; (p = malloc(size)); count++) {
    *p = *last;
    *last = p;
  }
  CHECK(errno == ENOMEM);
  return count;
}

static void free_all(void *last) {
  while (last) {
    void *next = *(void **)last;
    free(last);
    last = next;
  }
}

// How many MiB can be had in pieces of a size.
static void room(size_t size) {
  void *last;
  size_t count = take_all(size, &last);
  printf("%zu\n", count * size >> 20);
  // And all of it goes back.
  free_all(last);
  void *again = malloc(size);
  CHECK(again);
  free(again);
}

static void *own_mapping(void *at, size_t len, int flags) {
  return mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static void *one_thread(void *of) { return of; }

// A program that reached its limit and freed all has room for a thread and for mappings of its own, and then for as many
// pieces as before.
static void gives_addresses_back(size_t size, int trims) {
  void *last;
  size_t most = 0;
  for (int round = 0; round < 4; round++) {
    size_t count = take_all(size, &last);
    free_all(last);
    if (trims)
      malloc_trim(0);
    // The C library keeps the stack for the next thread.
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, one_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
    size_t len = count * size / (trims ? 10 : 4) * (trims ? 9 : 3);
    void *own = own_mapping(NULL, len, 0);
    if (own == MAP_FAILED)
      fprintf(stderr, "round %d: %zu MiB of %zu\n", round, len >> 20, count * size >> 20);
    CHECK(own != MAP_FAILED && munmap(own, len) == 0);
    if (round == 0)
      most = count;
    if (count * 10 < most * 9)
      fprintf(stderr, "round %d: %zu pieces, %zu at first\n", round, count, most);
    CHECK(count * 10 >= most * 9);
  }
}

// Something else is mapped where blocks were: it stays as it is, and the heap does without.
static void others_in_gaps(void) {
  enum { MAPPINGS = 64, LEN = 1 << 16, SIZE = 100000 };
  void *last, *at[MAPPINGS];
  size_t count = take_all(SIZE, &last), i = 0;
  int mapped = 0;
  for (void **p = last; p; p = *p)
    if (i++ % (count / MAPPINGS + 1) == 0)
      at[mapped++] = (void *)((uintptr_t)p & ~(uintptr_t)4095);
  int of = mapped;
  free_all(last);
  malloc_trim(0);
  mapped = 0;
  for (int k = 0; k < of; k++) {
    void *got = own_mapping(at[k], LEN, MAP_FIXED_NOREPLACE);
    if (got == MAP_FAILED)
      continue;
    memset(got, 100 + mapped, LEN);
    at[mapped++] = got;
  }
  CHECK(mapped > MAPPINGS / 2);
  for (int round = 0; round < 3; round++) {
    size_t again = take_all(SIZE, &last);
    // Each mapping costs a block or two.
    CHECK((again + 42 * mapped) * 10 >= count * 9);
    for (void **p = last; p; p = *p)
      memset(p + 1, 7, SIZE - sizeof *p);
    for (int k = 0; k < mapped; k++)
      CHECK(is_filled_with(at[k], LEN, 100 + k));
    free_all(last);
  }
}

static void take_and_free(int count, size_t size) {
  void *last = NULL;
  for (int i = 0; i < count; i++) {
    void **p = malloc(size);
    CHECK(p);
    *p = last;
    last = p;
  }
  free_all(last);
}

// A limit that is set when the heap has much that is free, and still mapped.
static void limits_itself_late(void) {
  size_t much = (size_t)300 << 20;
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%ld", &pages) == 1);
  fclose(f);
  take_and_free(3000, 100000);
  malloc_trim(0);
  struct rlimit limit = {(size_t)pages * 4096 + ((size_t)450 << 20), RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  for (int round = 0; round < 3; round++) {
    void *big = malloc(much);
    CHECK(big);
    free(big);
    void *own = own_mapping(NULL, much, 0);
    CHECK(own != MAP_FAILED && munmap(own, much) == 0);
    take_and_free(3000, 100000);
  }
}

// A limit that the program sets for itself after it has begun.
static void limits_itself(void) {
  struct rlimit limit = {(size_t)500000 << 10, (size_t)500000 << 10};
  free(malloc(100));
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  size_t size = (size_t)50 << 20;
  void *all[8];
  for (int i = 0; i < 7; i++)
    CHECK(all[i] = malloc(size));
  for (int i = 0; i < 7; i++)
    free(all[i]);
  for (int i = 0; i < 1000; i++)
    CHECK(malloc(100000));
}

// What the program maps by itself where the heap would grow stays as it is, and is none of the heap's.
static void others_mappings(void) {
  enum { MAPPINGS = 40, LEN = 1 << 20, COUNT = 6000, SIZE = 200000 };
  uintptr_t start = (uintptr_t)malloc(100) & ~(((uintptr_t)1 << 30) - 1);
  unsigned char *theirs[MAPPINGS];
  for (int i = 0; i < MAPPINGS; i++) {
    void *at = (void *)(start + ((uintptr_t)(40 + 24 * i) << 20));
    theirs[i] = mmap(at, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(theirs[i] == at);
    memset(theirs[i], 100 + i, LEN);
  }
  static unsigned char *all[COUNT];
  for (int i = 0; i < COUNT; i++) {
    CHECK(all[i] = malloc(SIZE));
    memset(all[i], i % 100, SIZE);
  }
  for (int i = 0; i < COUNT; i++) {
    CHECK(all[i][0] == i % 100 && all[i][SIZE - 1] == i % 100);
    free(all[i]);
  }
  for (int i = 0; i < MAPPINGS; i++)
    for (int at = 0; at < LEN; at += 61)
      CHECK(theirs[i][at] == 100 + i);
}

int main(int argc, char **argv) {
  const char *part = argc > 1 ? argv[1] : "";
  if (!strcmp(part, "sizes")) sizes();
  else if (!strcmp(part, "large")) large();
  else if (!strcmp(part, "resizes")) resizes();
  else if (!strcmp(part, "aligned")) aligned();
  else if (!strcmp(part, "refusals")) refusals();
  else if (!strcmp(part, "threads")) threads(40, exchange);
  else if (!strcmp(part, "frees_with_errno")) threads(6, frees_with_errno);
  else if (!strcmp(part, "many_threads")) many_threads();
  else if (!strcmp(part, "odd_alignments")) odd_alignments();
  else if (!strcmp(part, "info")) info();
  else if (!strcmp(part, "zeros")) zeros();
  else if (!strcmp(part, "free_again") && argc > 3) free_again(atoi(argv[2]), atoi(argv[3]));
  else if (!strcmp(part, "free_again_here")) free_again_here();
  else if (!strcmp(part, "free_again_reopened") && argc > 3) free_again_reopened(atoi(argv[2]), atoi(argv[3]));
  else if (!strcmp(part, "write_behind") && argc > 2) write_behind(atoi(argv[2]));
  else if (!strcmp(part, "free_tail") && argc > 2) free_tail(atoi(argv[2]));
  else if (!strcmp(part, "free_neighbour") && argc > 2) {
    char *p = malloc(atoi(argv[2]));
    free(p + malloc_usable_size(p));
  }
  else if (!strcmp(part, "free_in_object") && argc > 3) {
    char *p = malloc(atoi(argv[2]));
    free(p + atoi(argv[3]));
  }
  else if (!strcmp(part, "forks")) forks();
  else if (!strcmp(part, "forks_and_trims")) forks_and_trims();
  else if (!strcmp(part, "trim")) trim();
  else if (!strcmp(part, "limits_itself")) limits_itself();
  else if (!strcmp(part, "limits_itself_late")) limits_itself_late();
  else if (!strcmp(part, "others_mappings")) others_mappings();
  else if (!strcmp(part, "others_in_gaps")) others_in_gaps();
  else if (!strcmp(part, "gives_addresses_back") && argc > 3) gives_addresses_back(strtoul(argv[2], NULL, 10), atoi(argv[3]));
  else if (!strcmp(part, "room")) {
    room(argc > 2 ? strtoul(argv[2], NULL, 10) : 1 << 20);
    return 0;
  } else if (!strcmp(part, "free_twice")) {
    char *p = malloc(100000);
    free(p);
    free(p);
  } else if (!strcmp(part, "free_inside")) {
    char *p = malloc(100000);
    free(p + 4096);
  } else if (!strcmp(part, "free_resized")) {
    char *p = malloc(100000);
    CHECK(realloc(p, 1000000) != p);
    free(p);
  } else if (!strcmp(part, "resize_freed")) {
    char *p = malloc(100000);
    free(p);
    p = realloc(p, 500000);
  } else if (!strcmp(part, "free_unused")) {
    // In the heap's own addresses, where nothing was ever allocated.
    free((void *)((((uintptr_t)malloc(100) >> 30) + 1) << 30));
  } else if (!strcmp(part, "size_unused")) {
    malloc_usable_size((void *)(((((uintptr_t)malloc(100) >> 30) + 1) << 30) + 4096));
  } else if (!strcmp(part, "size_foreign")) {
    static char here[8192];
    malloc_usable_size((void *)(((uintptr_t)here + 4096) & ~(uintptr_t)4095));
  } else if (!strcmp(part, "free_mapping_twice")) {
    char *p = malloc(50 << 20);
    free(p);
    free(p);
  } else if (!strcmp(part, "free_in_mapping")) {
    free((char *)malloc(50 << 20) + 4096);
  } else if (!strcmp(part, "free_moved_mapping")) {
    char *p = malloc(50 << 20);
    CHECK(realloc(p, (size_t)300 << 20) != p || (p += 4096));
    free(p);
  } else if (!strcmp(part, "free_behind_gap")) {
    char *p = own_mapping(NULL, 3 * 4096, 0);
    CHECK(p != MAP_FAILED && munmap(p, 4096) == 0);
    free(p + 4096);
  } else if (!strcmp(part, "free_nowhere")) {
    free((void *)4096);
  } else if (!strcmp(part, "resize_nowhere")) {
    void *p = realloc((void *)4096, 50 << 20);
  } else if (!strcmp(part, "free_odd")) {
    static char here[8192];
    free(here + 4097);
  } else if (!strcmp(part, "free_foreign")) {
    char here[8192] = {0};
    free((void *)(((uintptr_t)here + 4096) & ~(uintptr_t)4095));
  } else {
    fprintf(stderr, "no such part: %s\n", part);
    return 2;
  }
  puts("holds");
  return 0;
}
