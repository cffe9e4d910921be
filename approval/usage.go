package approval

import (
	"path"
	"regexp"
	"strings"
)

// usage is what is harmless of a program, or of one of its subcommands. All else asks,
// so an option that nobody thought of does, too.
type usage struct {
	free   bool           // every option is harmless: it can only read and print
	short  string         // letters of harmless options, alone or in a cluster
	valued string         // letters that take the rest of their cluster as a value
	long   string         // names of harmless options, with or without "=value"
	single bool           // long options have one dash, as those of go and find
	verbs  string         // the only first operands there may be
	words  *regexp.Regexp // what operands must look like, nil = anything
	most   int            // operands there may be, 0 = any number
	first  *regexp.Regexp // what the first operand must look like
	bundle bool           // the first word may be options without a dash
	hands  bool           // what stands behind "--" goes to another program
	hooks  bool           // of git: it may run hooks, or talk to another repository
}

// program is a program that is known: one usage, or one for each subcommand.
type program struct {
	usage
	before string // options before the subcommand
	subs   map[string]usage
}

var (
	// plainFile is a file in the workspace by its plain name, or another harmless word.
	plainFile = regexp.MustCompile(`^[\pL\pN_./][\pL\pN_./,:%@+-]*$`)
	// inside is any word but one that may be an option or lie outside the workspace.
	inside = regexp.MustCompile(`^[^-+@=~/:][^=~]*$|^$`)
	never  = regexp.MustCompile(`^\b$`)
)

// leadsOut reports whether a word names a file above the workspace, or a hidden one,
// which may steer programs.
func leadsOut(word string) bool {
	for name := range strings.SplitSeq(word, "/") {
		if strings.HasPrefix(name, ".") && name != "." && name != "..." {
			return true
		}
	}
	return strings.HasPrefix(word, "/") || strings.Contains(word, ":/")
}

// fits reports whether an operand is harmless.
func (u usage) fits(word string) bool {
	switch u.words {
	case nil:
		return true
	case plainFile, inside:
		return u.words.MatchString(word) && !leadsOut(word)
	}
	return u.words.MatchString(word)
}

// knownPrograms are all families of programs.
var knownPrograms = families(gitPrograms, readers, goPrograms, nodePrograms, builders)

func families(list ...map[string]program) map[string]program {
	all := map[string]program{}
	for _, family := range list {
		for names, p := range family {
			for name := range strings.FieldsSeq(names) {
				all[name] = p
			}
		}
	}
	return all
}

// unknown is the usage of every program that is not known.
var unknown = usage{words: plainFile}

// harmless says why a command of plain words is more than a pattern covers; the first
// own words of it are the pattern's.
func harmless(words []string, own int) string {
	name := path.Base(words[0])
	if wrappers[name] || wrappers[strings.ToLower(name)] || loader(name) {
		return name + " can run other commands"
	}
	if strings.HasPrefix(name, "python") && len(words) > 2 && words[1] == "-m" && pythonTools[words[2]] {
		return harmless(words[2:], max(own-2, 0))
	}
	p, known := knownPrograms[words[0]]
	if !known {
		return unknown.judge(name, words, own, true)
	}
	if p.subs == nil {
		return p.judge(name, words, own, false)
	}
	at := 1
	for at < len(words) && member(p.before, words[at]) {
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
	return u.judge(name+" "+words[at], words[at:], max(own-at, 0), false)
}

func member(list, word string) bool {
	return word != "" && !strings.Contains(word, " ") && strings.Contains(" "+list+" ", " "+word+" ")
}

// judge says why not all words behind the first are harmless. A word behind "--" is
// judged like any other: what an option takes as its value, and what a program hands on,
// is not always what it seems. What a pattern names itself is covered where it is no option of
// a known program.
func (u usage) judge(name string, words []string, own int, ownOptions bool) string {
	operands, handed := 0, false
	for i, w := range words {
		if i == 0 {
			continue
		}
		if ownOptions && stream(w) {
			return w + " is what another command writes"
		}
		if ownOptions && i < own {
			if i == own-1 && i < len(words)-1 && strings.HasPrefix(w, "-") {
				return "the pattern must name what stands behind " + w
			}
			continue
		}
		if u.bundle && i == 1 && !strings.HasPrefix(w, "-") {
			w = "-" + w
		}
		if len(w) > 1 && w[0] == '-' {
			if w == "--" && !ownOptions {
				handed = u.hands
				continue
			}
			if handed || !u.option(w) {
				return "the option " + w + " of " + name + " is not known to be harmless"
			}
			continue
		}
		if operands++; u.most > 0 && operands > u.most {
			return "so many words behind " + name + " are not known to be harmless"
		}
		if operands == 1 && (u.verbs != "" && !member(u.verbs, w) || u.first != nil && !u.first.MatchString(w)) || i >= own && !u.fits(w) {
			return "the word " + w + " behind " + name + " is not known to be harmless"
		}
	}
	return ""
}

// option reports whether an option is harmless: by its whole name, or each letter of a
// cluster.
func (u usage) option(w string) bool {
	if u.free {
		return true
	}
	name, _, _ := strings.Cut(w, "=")
	if strings.HasPrefix(w, "--") {
		return member(u.long, name[2:])
	}
	if u.single {
		return member(u.long, name[1:]) || strings.Trim(name[1:], digits) == "" // find -mtime -1
	}
	for i := 1; i < len(w); i++ {
		if strings.IndexByte(u.valued, w[i]) >= 0 {
			return true
		}
		if strings.IndexByte(u.short, w[i]) < 0 {
			return false
		}
	}
	return true
}

// changesRepository reports whether a line has a git command that may run the
// repository's hooks, or talk to another repository; any reports whether it has one.
func changesRepository(list []simple) (changes, any bool) {
	p := knownPrograms["git"]
	for _, c := range list {
		if c.words[0] != "git" {
			continue
		}
		any = true
		for _, w := range c.words[1:] {
			if !member(p.before, w) {
				changes = changes || p.subs[w].hooks
				break
			}
		}
	}
	return changes, any
}
