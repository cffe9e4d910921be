package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Figures are counts of a tree that show how easy it is to work in. They cover the product: Go files that are neither
// tests, nor generated, nor support of tests.
type Figures struct {
	CodeLines     int // neither blank nor comment
	PackageLines  int // of the largest package, comments and blank lines included
	PackageFiles  int // of the package with the most files
	FileLines     int // of the largest file
	OldLanguage   int // per 1,000 comments and messages, those that use an old word
	PrivateNouns  int // old words in names
	LockPackages  int // packages that call the kernel's file lock
	RenamingFiles int // files that rename files
	DoorFiles     int // files of front doors that import a package below the client
	LongLines     int // over 140 columns
	Dependencies  int // direct ones, in go.mod
}

var (
	support = regexp.MustCompile(`(^|/)(testing|[a-z]+test|testdata|bench|conformance|failpoint|crashloop|job|tools)(/|$)`)
	oldWord = regexp.MustCompile(`(?i)\b(says?|said|tells?|told|nobody|somebody|stands?|stood|heard?|hears?|goes on|gone on|went on|going on|` +
		`is (looked|asked|waited|told|gone)|who (is|was|has|had|does|did|comes?|goes|reads?|writes?|looks?|asks?|waits?)|lies|lay|whatever|` +
		`meanwhile|anew|else's)\b`)
	fineWord = regexp.MustCompile("(?i)`[^`]*`|\"[^\"]*\"|\\bset aside\\b|\\bstands for\\b|\\bstand-alone\\b")
	noun     = regexp.MustCompile(`(?i)\b(desk|seat|purse|ear|air|voices?|tape|player|annals|chapter|deed|shelf|shelves|sieve|ledger|story|` +
		`glance|grounds?|beside|heard|told|stands|closeness|stray|chronicle|standin|leaving|aside)\b`)

	generated  = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	text       = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	textOrRaw  = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`")
	hump       = regexp.MustCompile(`([a-z])([A-Z])`)
	setAside   = regexp.MustCompile(`(?i)set aside`)
	kernelLock = regexp.MustCompile(`unix\.Flock\(|syscall\.Flock\(|FcntlFlock\(|LockFileEx\(`)
	renameCall = regexp.MustCompile(`\bos\.Rename\(|unix\.Renameat2?\(|\broot\.Rename\(`)
	belowDoors = regexp.MustCompile(`/(store|task|checkpoint|roofmt|catalog|journal)[/"]`)
	dependency = regexp.MustCompile(`(?m)^\t\S+ v\S+$`)
)

// doors are the front-door packages.
var doors = []string{"cli", "server", "web", "acp"}

// Measure counts a tree.
func Measure(tree fs.FS) (Figures, error) {
	m := measure{lines: map[string]int{}, files: map[string]int{}, locks: map[string]bool{}}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || name != "." && hasModule(tree, name)):
			return fs.SkipDir
		case !entry.Type().IsRegular() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || support.MatchString(path.Dir(name)):
			return nil
		}
		data, err := fs.ReadFile(tree, name)
		if err == nil && !generated.Match(data) {
			m.file(name, string(data))
		}
		return err
	})
	if err != nil {
		return m.Figures, fmt.Errorf("measure the tree: %w", err)
	}
	for dir, lines := range m.lines {
		m.PackageLines, m.PackageFiles = max(m.PackageLines, lines), max(m.PackageFiles, m.files[dir])
	}
	m.LockPackages = len(m.locks)
	if m.sentences > 0 {
		m.OldLanguage = (1000*m.old + m.sentences/2) / m.sentences
	}
	mod, err := fs.ReadFile(tree, "go.mod")
	m.Dependencies = len(dependency.FindAll(mod, -1))
	return m.Figures, err
}

func hasModule(tree fs.FS, dir string) bool {
	_, err := fs.Stat(tree, path.Join(dir, "go.mod"))
	return err == nil
}

type measure struct {
	Figures
	lines, files   map[string]int // by package
	locks          map[string]bool
	sentences, old int
}

func (m *measure) file(name, data string) {
	lines := strings.Split(data, "\n")
	dir := path.Dir(name)
	m.lines[dir] += len(lines)
	m.files[dir]++
	m.FileLines = max(m.FileLines, len(lines))
	renames := false
	for _, line := range lines {
		if len([]rune(strings.ReplaceAll(line, "\t", "    "))) > 140 {
			m.LongLines++
		}
		renames = renames || renameCall.MatchString(line)
		if kernelLock.MatchString(line) {
			m.locks[dir] = true
		}
		m.line(strings.TrimSpace(line))
	}
	if renames {
		m.RenamingFiles++
	}
	if slices.Contains(doors, strings.SplitN(name, "/", 2)[0]) {
		for _, line := range lines[:min(60, len(lines))] {
			if strings.Contains(line, "roost-dev/roost") && belowDoors.MatchString(line) {
				m.DoorFiles++
				break
			}
		}
	}
}

// line counts the words of one line: those in its comment and messages, and those in its names.
func (m *measure) line(line string) {
	if line == "" {
		return
	}
	if comment, ok := strings.CutPrefix(line, "//"); ok {
		m.sentence(comment)
		return
	}
	m.CodeLines++
	code, comment, ok := strings.Cut(textOrRaw.ReplaceAllString(line, `""`), "//")
	if ok {
		m.sentence(comment)
	}
	for _, message := range text.FindAllString(line, -1) {
		if message = message[1 : len(message)-1]; len(strings.Fields(message)) >= 3 {
			m.sentence(message)
		}
	}
	m.PrivateNouns += len(noun.FindAllString(setAside.ReplaceAllString(hump.ReplaceAllString(code, "$1 $2"), ""), -1))
}

func (m *measure) sentence(words string) {
	m.sentences++
	if oldWord.MatchString(fineWord.ReplaceAllString(words, "")) {
		m.old++
	}
}
