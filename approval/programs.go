package approval

import (
	"cmp"
	_ "embed" // programs.txt
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/lazyregexp"
)

// usage describes the harmless options and operands of a program, or of one of its subcommands. All others ask,
// including a harmless option that is missing here.
type usage struct {
	free   bool           // every option is harmless: the program can only read and print
	short  string         // letters of harmless options, alone or in a cluster
	valued string         // letters that take the rest of their cluster as a value
	long   string         // names of harmless options, with or without "=value"
	single bool           // long options have one dash, like those of go and find
	verbs  string         // the only harmless first operands
	words  *regexp.Regexp // the form of operands, nil = any
	most   int            // the largest number of operands, 0 = any
	first  *regexp.Regexp // the form of the first operand
	bundle bool           // the first word may be options without a dash
	hands  bool           // the words after "--" are for another program
	hooks  bool           // for git: it may run hooks, or contact another repository
	before string         // for a program with subcommands: options before the subcommand
}

// program is a known program: one usage, or one for each subcommand.
type program struct {
	usage
	subs map[string]usage // by name; empty for a program without subcommands
}

// programs is the content of programs.txt.
type programs struct {
	known        map[string]program
	runs         map[string]usage  // options and words that make a program run another one
	interpreters map[string]usage  // the options with which a program runs a script file and no text of the line
	launchers    map[string]string // the words after which a program runs the one that its arguments name
	lists        map[string]string // names of programs
}

//go:embed programs.txt
var programsText string

// table is parsed when the first command is judged.
var table = sync.OnceValue(func() *programs { return readPrograms(programsText) })

func readPrograms(text string) *programs {
	t := &programs{
		known: map[string]program{}, runs: map[string]usage{}, interpreters: map[string]usage{},
		launchers: map[string]string{}, lists: map[string]string{},
	}
	shared := map[string]usage{}
	var kind string
	var names, owners []string
	var subs map[string]usage
	var u usage
	usages := map[string]map[string]usage{"usage": shared, "runs": t.runs, "interpreter": t.interpreters}
	lists := map[string]map[string]string{"launcher": t.launchers, "list": t.lists}
	finish := func() {
		if kind == "program" {
			owners, subs = names, map[string]usage{}
			usages["sub"] = subs
		}
		for _, name := range names {
			switch {
			case kind == "program":
				t.known[name] = program{usage: u}
			case usages[kind] != nil:
				usages[kind][name] = u
			case lists[kind] != nil:
				lists[kind][name] = u.verbs
			default:
				panic("programs.txt: what is a " + kind + "?")
			}
		}
		for _, owner := range owners {
			t.known[owner] = program{t.known[owner].usage, subs}
		}
	}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case line[0] != '\t':
			finish()
			kind, names, u = words[0], words[1:], usage{}
		case words[0] == "also":
			names = append(names, words[1:]...)
		case words[0] == "like":
			u.add(shared[words[1]])
		default:
			u.set(words[0], strings.Join(words[1:], " "))
		}
	}
	finish()
	return t
}

// listed reports whether a program is in a list of programs.txt.
func listed(list, name string) bool { return hasWord(table().lists[list], name) }

// isInterpreter reports whether a program runs script files. The script of sed is a word of its line.
func isInterpreter(name string) bool {
	_, is := table().interpreters[unversioned(name)]
	return is && name != "sed" && name != "gsed"
}

// unversioned returns the name of an interpreter without its version, python for python3.12. It returns other names
// unchanged.
func unversioned(name string) string {
	plain := strings.TrimRight(name, digits+".")
	if _, is := table().interpreters[plain]; is {
		return plain
	}
	return name
}

// add adds a shared usage.
func (u *usage) add(o usage) {
	u.short, u.valued, u.words = u.short+o.short, u.valued+o.valued, cmp.Or(u.words, o.words)
	u.long = strings.TrimSpace(u.long + " " + o.long)
	u.single, u.hands = u.single || o.single, u.hands || o.hands
}

// set reads one line of a usage.
func (u *usage) set(key, value string) {
	letters := map[string]*string{"short": &u.short, "valued": &u.valued}
	lists := map[string]*string{"long": &u.long, "verbs": &u.verbs, "before": &u.before}
	shapes := map[string]**regexp.Regexp{"words": &u.words, "first": &u.first}
	flags := map[string]*bool{"free": &u.free, "single": &u.single, "bundle": &u.bundle, "hands": &u.hands, "hooks": &u.hooks}
	switch {
	case letters[key] != nil:
		*letters[key] += value
	case lists[key] != nil:
		*lists[key] = strings.TrimSpace(*lists[key] + " " + value)
	case shapes[key] != nil:
		*shapes[key] = form(value)
	case flags[key] != nil:
		*flags[key] = true
	case key == "most":
		u.most, _ = strconv.Atoi(value)
	default:
		panic("programs.txt: what is " + key + "?")
	}
}

var (
	// plainFile matches a file in the workspace by its plain name, or another harmless word.
	plainFile = lazyregexp.New(`^[\pL\pN_./][\pL\pN_./,:%@+-]*$`)
	// inside matches any word except one that may be an option or outside the workspace.
	inside = lazyregexp.New(`^[^-+@=~/:][^=~]*$|^$`)

	forms = map[string]func() *regexp.Regexp{
		"plain": plainFile, "inside": inside, "never": lazyregexp.New(`^\b$`),
		// remote-address is a repository by its address at a server. A folder could hold hooks.
		"remote-address": lazyregexp.New(`^(https?|ssh|git)://[A-Za-z0-9][^~]*$|` +
			`^[A-Za-z0-9_.-]+@[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_/][A-Za-z0-9_./-]*$|` +
			`^[A-Za-z0-9_][A-Za-z0-9_-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$`),
		// reference is a name that neither forces nor deletes a reference.
		"reference": lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_./:^~@{}-]*$`),
	}
)

// form returns a form of words, which is given by its name or as a regular expression.
func form(text string) *regexp.Regexp {
	if re, ok := forms[text]; ok {
		return re()
	}
	return regexp.MustCompile(text)
}

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
	case plainFile(), inside():
		return u.words.MatchString(word) && !leadsOut(word)
	}
	return u.words.MatchString(word)
}

func hasWord(list, word string) bool {
	return word != "" && !strings.Contains(word, " ") && strings.Contains(" "+list+" ", " "+word+" ")
}

// beyondUsage returns why not all words after the first are harmless, "" when they are. It judges a word after "--"
// like any other: an option's value, and a word for another program, may mean something else there. The pattern
// covers its own words unless they are options of a known program.
func (u usage) beyondUsage(name string, words []string, own int, ownOptions bool) string {
	operands, handed := 0, false
	for i, w := range words {
		if i == 0 {
			continue
		}
		if ownOptions && isStream(w) {
			return w + " is the output of another command"
		}
		if ownOptions && i < own {
			if i == own-1 && i < len(words)-1 && strings.HasPrefix(w, "-") {
				return "the pattern must name what follows " + w
			}
			continue
		}
		if u.bundle && i == 1 && !strings.HasPrefix(w, "-") {
			w = "-" + w
		}
		// After an operand, or "--", a program may take an option for the file to write.
		if len(w) > 1 && w[0] == '-' && (u.most == 0 || operands == 0 && w != "--") {
			if w == "--" && !ownOptions {
				handed = u.hands
				continue
			}
			if handed || !u.isHarmlessOption(w) {
				return "the option " + w + " of " + name + " is not known to be harmless"
			}
			continue
		}
		if operands++; u.most > 0 && operands > u.most {
			return "that many words after " + name + " are not known to be harmless"
		}
		if operands == 1 && (u.verbs != "" && !hasWord(u.verbs, w) || u.first != nil && !u.first.MatchString(w)) || i >= own && !u.fits(w) {
			return "the word " + w + " after " + name + " is not known to be harmless"
		}
	}
	return ""
}

// isHarmlessOption reports whether an option is harmless: by its whole name, or each letter of a cluster.
func (u usage) isHarmlessOption(w string) bool {
	if u.free {
		return true
	}
	name, _, _ := strings.Cut(w, "=")
	if strings.HasPrefix(w, "--") {
		return hasWord(u.long, name[2:])
	}
	if u.single {
		return hasWord(u.long, name[1:]) || strings.Trim(name[1:], digits) == "" // find -mtime -1
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

// digits are short options of programs that take a count (head -20).
const digits = "0123456789"
