"""What was recorded: a directory for each boot, and the recordings beside them."""

import os


class Run:
    """One boot of a kernel with a load and settings."""

    def __init__(self, out, name):
        self.name = name
        self.directory = os.path.join(out, "runs", name)
        self.recording = os.path.join(out, "recordings", name + ".unfrag")
        facts = dict(line.split("\t", 1) for line in self.text("facts").splitlines())
        self.load, self.kernel, self.settings = facts["load"], facts["kernel"], facts["settings"]
        # The settings that the load is run with where another kernel is asked for.
        self.usual = facts["usual"]
        self.asked = dict(pair.split("=", 1) for pair in self.settings.split(",") if "=" in pair)

    def text(self, name):
        with open(os.path.join(self.directory, name)) as file:
            return file.read()

    def phase(self, phase, file):
        return self.text(os.path.join("phases", phase, file))

    def vmstat(self, phase):
        pairs = (line.split() for line in self.phase(phase, "vmstat").splitlines())
        return {name: int(value) for name, value in pairs}

    def uptime(self, phase):
        return float(self.phase(phase, "uptime").split()[0])

    def has_phase(self, phase):
        return os.path.exists(os.path.join(self.directory, "phases", phase, "vmstat"))

    def since_first_event(self, phase):
        """Seconds between the beginning of the trace and a phase, within half a second: a load waits two seconds first."""
        return self.uptime(phase) - self.uptime("begin") + 2

    def setting(self, name, file="settings-end"):
        """The value that a setting had at the end, as the kernel shows it; None if this kernel has none of it."""
        path = {
            "vm.": "/proc/sys/vm/" + name[len("vm."):],
            "lru": "/sys/kernel/mm/" + name,
            "thp": "/sys/kernel/mm/transparent_hugepage/" + name[len("thp/"):],
        }[name[:3]]
        for line in self.text(file).splitlines():
            if line.startswith(path + " = "):
                value = line.split(" = ", 1)[1].strip()
                # One of several words is in brackets.
                return value.split("[")[1].split("]")[0] if "[" in value else value
        return None

    def question(self):
        return (self.load, self.kernel, self.settings)


class Shipped:
    """A recording that ships, with a load that is among those that are run: nothing is known of it but what it holds."""

    def __init__(self, recording, load, kernel, settings):
        self.name, self.recording = os.path.basename(recording), recording
        self.load, self.kernel, self.settings = load, kernel, settings
        self.asked = {}

    def setting(self, name, file=None):
        return None

    def has_phase(self, phase):
        return False


def shipped(path, project):
    """Those that a list names, by paths in the project."""
    if not path or not os.path.exists(path):
        return []
    with open(path) as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return [Shipped(os.path.join(project, line[0]), *line[1:4]) for line in lines]


def all_runs(out):
    """Every boot that left a recording, in the order of their names."""
    names = sorted(os.listdir(os.path.join(out, "runs")))
    return [Run(out, n) for n in names if os.path.exists(os.path.join(out, "recordings", n + ".unfrag"))]
