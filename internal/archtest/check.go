// Package archtest checks the shape of this repository: which package may import which, that every package has a
// comment about its purpose, that no file grows too large, that no package has a name without a subject, and that
// nothing names the machine that the code was written on.
//
// CheckPage compares the table of packages in ARCHITECTURE.md with the tree, and CheckWalks the walks there with the
// code: every function that a walk names exists, and it calls the next one. CheckLinks follows the links between pages.
//
// Check works on any file tree, so that its own tests can pass it broken ones; the test in repository_test.go runs it
// on this repository. It reads the imports of every file with go/parser, whatever the build tags, so a rule holds on
// all systems and not only on the one that runs the test.
//
// Measure counts what makes a tree hard to work in: sizes, old words, mechanisms that exist more than once. A ratchet
// in figures_test.go holds the counts: they may only fall.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxLines is the largest number of lines of a Go file that is not generated. Most have 100 to 400.
const maxLines = 800

// heaps are package names without a subject; such packages attract everything.
var heaps = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true,
	"manager": true, "managers": true, "misc": true, "shared": true,
}

// lockPackage is the only package that calls the kernel's file lock.
const lockPackage = "internal/filelock"

// buildPaths matches folders that exist only where the code was written. It is assembled from pieces so that this
// file does not match.
var buildPaths = regexp.MustCompile(
	`/wor` + `k/(main|shared|steering|\.[a-z]+)\b|/tm` + `p/brief\b|/far` + `m/|/roo` + `t/go/pkg\b`)

// Violation is one broken rule.
type Violation struct {
	Path   string // of the file or folder, from the root of the tree
	Line   int    // 0 = the whole file
	Reason string
}

func (v Violation) String() string {
	if v.Line == 0 {
		return v.Path + ": " + v.Reason
	}
	return fmt.Sprintf("%s:%d: %s", v.Path, v.Line, v.Reason)
}

// Check reports every broken rule of a tree whose packages have import paths below module, in the order of the paths.
// A folder with its own go.mod is another module: Check reads only its texts. It skips testdata and .git.
func Check(tree fs.FS, module string) ([]Violation, error) {
	c := checker{tree: tree, module: module, packages: map[string]*pkg{}}
	if err := fs.WalkDir(tree, ".", c.visit); err != nil {
		return nil, fmt.Errorf("check the shape of the tree: %w", err)
	}
	c.judgePackages()
	slices.SortFunc(c.found, func(a, b Violation) int {
		if n := strings.Compare(a.Path, b.Path); n != 0 {
			return n
		}
		return a.Line - b.Line
	})
	return c.found, nil
}

type checker struct {
	tree     fs.FS
	module   string
	foreign  []string // folders of other modules
	packages map[string]*pkg
	found    []Violation
}

// pkg describes one folder of Go files.
type pkg struct {
	name      string
	code      bool // it has files other than tests
	commented bool
}

func (c *checker) add(file string, line int, reason string, args ...any) {
	c.found = append(c.found, Violation{Path: file, Line: line, Reason: fmt.Sprintf(reason, args...)})
}

func (c *checker) visit(name string, entry fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case entry.Name() == ".git" && !entry.IsDir(): // a work tree's pointer to its repository
		return nil
	case entry.Name() == ".git":
		return fs.SkipDir
	case entry.IsDir():
		if _, err := fs.Stat(c.tree, path.Join(name, "go.mod")); err == nil && name != "." {
			c.foreign = append(c.foreign, name)
		}
		return nil
	case !entry.Type().IsRegular():
		return nil
	}
	data, err := fs.ReadFile(c.tree, name)
	if err != nil {
		return err
	}
	c.text(name, data)
	if path.Ext(name) != ".go" || c.isForeign(name) {
		return nil
	}
	return c.source(name, data)
}

func (c *checker) isForeign(name string) bool {
	if slices.Contains(strings.Split(name, "/"), "testdata") {
		return true
	}
	return slices.ContainsFunc(c.foreign, func(dir string) bool { return inside(name, dir) })
}

// text checks any file as text.
func (c *checker) text(name string, data []byte) {
	at := buildPaths.FindIndex(data)
	if at == nil {
		return
	}
	line := 1 + bytes.Count(data[:at[0]], []byte{'\n'})
	c.add(name, line, "names %q, a folder of the machine it was written on", data[at[0]:at[1]])
}

// source checks one Go file.
func (c *checker) source(name string, data []byte) error {
	if n := bytes.Count(data, []byte{'\n'}); n > maxLines && !generated.Match(data) {
		c.add(name, 0, "%d lines; over %d it is two files", n, maxLines)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, data, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	dir, test := path.Dir(name), strings.HasSuffix(name, "_test.go")
	p := c.packages[dir]
	if p == nil {
		p = &pkg{}
		c.packages[dir] = p
	}
	if !test || p.name == "" {
		p.name = strings.TrimSuffix(file.Name.Name, "_test")
	}
	p.code = p.code || !test
	p.commented = p.commented || isPackageComment(file)
	for _, r := range reserved {
		if at := r.call.FindIndex(data); at != nil && dir != r.owner && !test && !(r.supportMay && support.MatchString(dir)) {
			c.add(name, 1+bytes.Count(data[:at[0]], []byte{'\n'}), "%s", r.why)
		}
	}
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return err
		}
		to, ours := strings.CutPrefix(target, c.module+"/")
		if !ours {
			continue
		}
		if why := judge(dir, to, test); why != "" {
			c.add(name, set.Position(spec.Pos()).Line, "imports %s, but %s", to, why)
		}
	}
	return nil
}

// reserved are calls that only one package may make; tests may make them too. No package is the owner "".
var reserved = []struct {
	call       *regexp.Regexp
	owner, why string
	supportMay bool // test support may make the call
}{
	{kernelLock, lockPackage, "calls the kernel's file lock; " + lockPackage + " does that for all systems", false},
	{regexp.MustCompile(`os\.OpenRoot\(`), "internal/inputfile", "waits where a pipe took the folder's place; use inputfile.OpenDir", true},
	{
		regexp.MustCompile(`(?m)^(var |\t)[\w, ]+ = regexp\.MustCompile\(`), "internal/lazyregexp",
		"compiles a regular expression in each process that starts; use internal/lazyregexp", true,
	},
	{
		regexp.MustCompile(`(?m)^(import |\t)([\w.]+ )?"(html|text)/template"$`), "",
		"imports a template package that calls methods by their names, so the linker keeps all methods; write a .templ file", true,
	},
}

// isPackageComment reports whether a comment describes the package in the form that go doc shows: "Package x ..." or,
// for a program, "Command x ...".
func isPackageComment(file *ast.File) bool {
	word := "Package "
	if file.Name.Name == "main" {
		word = "Command "
	}
	return strings.HasPrefix(file.Doc.Text(), word)
}

// judgePackages applies the rules that need a whole folder.
func (c *checker) judgePackages() {
	for dir, p := range c.packages {
		if heaps[p.name] || heaps[path.Base(dir)] {
			c.add(dir, 0, "the name has no subject; name the package after what it knows")
		}
		if p.code && !p.commented {
			c.add(dir, 0, "no package comment (a file that begins with // Package %s ...)", p.name)
		}
		_, _, placed := owner(dir)
		if !placed && dir != "." && dir != "internal/archtest" {
			c.add(dir, 0, "has no layer; add it to the table in internal/archtest/layer.go")
		}
	}
}

// packageTable is the heading of the table with every package.
const packageTable = "| package |"

var quoted = regexp.MustCompile("`([^`]+)`")

// Limits of a page, so that it fits on a few screens and is read.
const (
	pageLines   = 330
	pageColumns = 120
)

// CheckPage compares the table of packages on a page of the tree with the packages of the tree: each package has a
// row, its own or that of a folder above it, and each row has a package. It also checks that the Go files that the
// page names exist, and that the page is not too long or too wide. A wrong page that people read first is worse than
// none.
func CheckPage(tree fs.FS, module, page string) ([]Violation, error) {
	text, err := fs.ReadFile(tree, page)
	if err != nil {
		return nil, fmt.Errorf("check the table of packages: %w", err)
	}
	c := checker{tree: tree, module: module, packages: map[string]*pkg{}}
	if err := fs.WalkDir(tree, ".", c.visit); err != nil {
		return nil, fmt.Errorf("check the table of packages: %w", err)
	}
	var found []Violation
	add := func(line int, reason string, args ...any) {
		found = append(found, Violation{Path: page, Line: line, Reason: fmt.Sprintf(reason, args...)})
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > pageLines {
		add(0, "has %d lines; over %d it is not read: package comments hold the details", len(lines), pageLines)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > pageColumns {
			add(i+1, "has %d columns; over %d it does not fit on a screen", n, pageColumns)
		}
	}
	for i, line := range lines {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if _, err := fs.Stat(tree, m[1]); err != nil && path.Ext(m[1]) == ".go" && !strings.ContainsAny(m[1], "<*") {
				add(i+1, "names the file %s, which is not there", m[1])
			}
		}
	}
	rows := tableRows(string(text))
	if len(rows) == 0 {
		add(0, "has no table that begins with %q", packageTable)
		return found, nil
	}
	full := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(c.packages)) {
		if !c.packages[dir].code || dir == "." {
			continue
		}
		covered := false
		for name := range rows {
			if inside(dir, path.Clean(name)) {
				covered, full[name] = true, true
			}
		}
		if !covered {
			add(0, "has no row for %s: add one with what it knows, and the law it keeps", dir)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if !full[name] {
			add(rows[name], "has a row for %s, which is not there", name)
		}
	}
	return found, nil
}

var (
	link       = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// CheckLinks reports the links on the pages of a tree, to files and headings of it, that lead nowhere.
func CheckLinks(tree fs.FS, pages ...string) (found []Violation, err error) {
	for _, page := range pages {
		text, err := fs.ReadFile(tree, page)
		if err != nil {
			return nil, fmt.Errorf("check the links: %w", err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				target := page
				if m[1] != "" {
					target = path.Join(path.Dir(page), m[1])
				}
				if _, err := fs.Stat(tree, target); err != nil {
					found = append(found, Violation{page, i + 1, "links to " + target + ", which is not there"})
					continue
				}
				if m[2] == "" {
					continue
				}
				known, err := headings(tree, target)
				if err != nil {
					return nil, fmt.Errorf("check the links: %w", err)
				}
				if !known[m[2]] {
					found = append(found, Violation{page, i + 1, "links to " + target + "#" + m[2] + ", which is not there"})
				}
			}
		}
	}
	return found, nil
}

// headings returns the anchors of a page: its headings in lower case, with hyphens, without punctuation.
func headings(tree fs.FS, page string) (map[string]bool, error) {
	text, err := fs.ReadFile(tree, page)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "#") {
			title := notInSlugs.ReplaceAllString(strings.ToLower(strings.TrimLeft(line, "# ")), "")
			out[strings.ReplaceAll(title, " ", "-")] = true
		}
	}
	return out, nil
}

// tableRows returns the packages in the first column, with their line numbers.
func tableRows(text string) map[string]int {
	rows := map[string]int{}
	inside := false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, packageTable):
			inside = true
		case inside && !strings.HasPrefix(line, "|"):
			return rows
		case inside:
			cell, _, _ := strings.Cut(line[1:], "|")
			for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
				rows[m[1]] = i + 1
			}
		}
	}
	return rows
}
