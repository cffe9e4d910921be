package archtest

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// packageTable is the heading of the table with every package.
const packageTable = "| package |"

var quoted = regexp.MustCompile("`([^`]+)`")

// CheckPage compares the table of packages on a page of the tree with the packages of the tree: each package has a
// row about what it knows, and each row has a package. A page that is read first and wrong is worse than none.
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
	rows := tableRows(string(text))
	if len(rows) == 0 {
		add(0, "has no table that begins with %q", packageTable)
		return found, nil
	}
	for _, dir := range slices.Sorted(maps.Keys(c.packages)) {
		if _, ok := rows[dir]; !ok && c.packages[dir].code && dir != "." {
			add(0, "has no row for %s: add one with what it knows, and the law it keeps", dir)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if p := c.packages[path.Clean(name)]; p == nil || !p.code {
			add(rows[name], "has a row for %s, which is not there", name)
		}
	}
	return found, nil
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
