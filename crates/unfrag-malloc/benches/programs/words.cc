// A program that has the compiler instantiate much of the C++ library.
#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

using Token = std::variant<long, double, std::string>;

struct Read {
  std::vector<Token> tokens;
  void operator()(const std::string &text) {
    static const std::regex word("([0-9]+\\.[0-9]*)|([0-9]+)|([A-Za-z_]+)");
    for (std::sregex_iterator i(text.begin(), text.end(), word), end; i != end; ++i) {
      if ((*i)[1].matched)
        tokens.emplace_back(std::stod(i->str()));
      else if ((*i)[2].matched)
        tokens.emplace_back(std::stol(i->str()));
      else
        tokens.emplace_back(i->str());
    }
  }
};

template <int N> struct Tree {
  std::map<std::array<int, N>, std::unordered_map<std::string, std::set<double>>> of;
  Tree<N - 1> below;
  void put(const std::string &key, double value) {
    std::array<int, N> at;
    std::iota(at.begin(), at.end(), int(key.size()));
    of[at][key].insert(value);
    below.put(key, value / N);
  }
  double sum() const {
    double total = below.sum();
    for (const auto &[at, words] : of)
      for (const auto &[word, values] : words)
        total += std::accumulate(values.begin(), values.end(), at.front() * 1.0);
    return total;
  }
};
template <> struct Tree<0> {
  void put(const std::string &, double) {}
  double sum() const { return 0; }
};

int main(int argc, char **argv) {
  Read read;
  std::multimap<std::string, std::filesystem::path> files;
  for (int i = 1; i < argc; i++) {
    std::ifstream file(argv[i]);
    std::stringstream text;
    text << file.rdbuf();
    read(text.str());
    files.emplace(argv[i], std::filesystem::absolute(argv[i]));
  }
  Tree<12> tree;
  std::deque<std::future<std::optional<double>>> work;
  for (const auto &token : read.tokens)
    work.push_back(std::async(std::launch::deferred, [&token]() -> std::optional<double> {
      return std::visit(
          [](const auto &t) -> std::optional<double> {
            if constexpr (std::is_same_v<std::decay_t<decltype(t)>, std::string>)
              return std::nullopt;
            else
              return double(t);
          },
          token);
    }));
  std::mt19937_64 random(1);
  for (auto &w : work)
    if (auto value = w.get())
      tree.put(std::to_string(random() % 1000), *value);
  std::cout << std::fixed << std::setprecision(3) << tree.sum() << ' ' << files.size() << '\n';
}
