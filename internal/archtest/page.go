package archtest

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// packageTable is the heading of the table with every package.
const packageTable = "| package |"

var quoted = regexp.MustCompile("`([^`]+)`")

// A page that fits on a few screens is read.
const (
	pageLines   = 330
	pageColumns = 120
)

// CheckPage compares the table of packages on a page of the tree with the packages of the tree: each package has a row,
// its own or that of a folder above it, and each row has a package. The Go files that the page names exist, and it is
// no longer and no wider than a reader likes. A page that is read first and wrong is worse than none.
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
	link       = regexp.MustCompile(`\]\(([^)#\s]*)#([^)\s]+)\)`)
	notInSlugs = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// CheckLinks reports the links to headings, on the pages of a tree, that lead to no heading.
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

// headings are the anchors that a page has: its headings in lower case, with hyphens, without marks.
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

// tableRows are the packages that the first column names, with their lines.
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
