package approval

import (
	"path"
	"strings"
)

// beyondPattern is why a command of plain words is more than a pattern covers, "" when it is not. The pattern names the
// first own words.
func beyondPattern(words []string, own int) string {
	name := path.Base(words[0])
	if wrappers[name] || wrappers[strings.ToLower(name)] || isLoader(name) {
		return name + " can run other commands"
	}
	if strings.HasPrefix(name, "python") && len(words) > 2 && words[1] == "-m" && pythonTools[words[2]] {
		return beyondPattern(words[2:], max(own-2, 0))
	}
	p, known := knownPrograms[words[0]]
	if !known {
		return unknown.beyondUsage(name, words, own, true)
	}
	if p.subs == nil {
		return p.beyondUsage(name, words, own, false)
	}
	at := 1
	for at < len(words) && hasWord(p.before, words[at]) {
		at++
	}
	if at == len(words) {
		if at > 1 && words[at-1] == "--version" {
			return ""
		}
		return name + " without a subcommand is not known to be harmless"
	}
	if strings.HasPrefix(words[at], "-") {
		return "options before " + name + "'s subcommand can change what it runs"
	}
	u, ok := p.subs[words[at]]
	if !ok {
		return name + " " + words[at] + " is not known to be harmless"
	}
	return u.beyondUsage(name+" "+words[at], words[at:], max(own-at, 0), false)
}

// changesRepository reports whether a line has a git command that may run the repository's hooks, or contact another
// repository; any reports whether it has a git command.
func changesRepository(list []simple) (changes, any bool) {
	p := knownPrograms["git"]
	for _, c := range list {
		if c.words[0] != "git" {
			continue
		}
		any = true
		for _, w := range c.words[1:] {
			if !hasWord(p.before, w) {
				changes = changes || p.subs[w].hooks
				break
			}
		}
	}
	return changes, any
}

// pythonTools are modules that "python3 -m" runs as programs of the same name.
var pythonTools = wordSet("pytest", "mypy", "black", "flake8", "ruff")

// unnamedProgram: python -m runs any module, and uv run any program, so the pattern must name it.
func unnamedProgram(words, p []string) string {
	name := path.Base(words[0])
	if sub := launchers[name]; sub != nil {
		for i, w := range words[1:] {
			if sub[w] && len(p) < i+3 {
				return "the pattern must name what " + strings.Join(words[:i+2], " ") + " runs"
			}
		}
	}
	if !interpreters[name] || knownPrograms[name].subs != nil {
		return ""
	}
	for _, w := range p[1:] {
		if !strings.HasPrefix(w, "-") {
			return ""
		}
	}
	if len(words) > 1 {
		return "the pattern must name what " + words[0] + " runs"
	}
	return words[0] + " without a program reads it from its input"
}
