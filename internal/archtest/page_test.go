package archtest

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheckPageReports(t *testing.T) {
	const head = "# The house\n\n`store` is mentioned here, too.\n\n| package | what it knows |\n|---|---|\n"
	house := map[string]string{
		"store/a.go":              source("store"),
		"store/a_test.go":         "package store_test\n",
		"journal/filelog/a.go":    source("filelog"),
		"task/testdata/bad.go":    source("common"),
		"tools/go.mod":            "module tools\n",
		"tools/x/a.go":            source("x"),
		"internal/only/a_test.go": "package only\n",
	}
	for _, c := range []struct {
		name, page string
		want       []string
	}{
		{"each has its row", head + "| `store` | tasks |\n| `journal/filelog` | a log |\n\n| `elsewhere` | no row |\n", nil},
		{"two in one row", head + "| `store`, `journal/filelog` | all of it |\n", nil},
		{"the last line may end the page", head + "| `store` | |\n| `journal/filelog` | |", nil},
		{"a row covers what is below it", head + "| `store` | tasks |\n| `journal` | logs |\n", nil},
		{"a row covers no folder with a longer name", head + "| `stor` | |\n| `store` | |\n| `journal/file` | |\n| `journal` | |\n", []string{
			"PAGE.md:9: has a row for journal/file, which is not there", "PAGE.md:7: has a row for stor, which is not there",
		}},
		{"a file is gone", head + "| `store`, `journal` | in `store/a.go` and `store/b.go`, as `store/<noun>.go` |\n", []string{
			"PAGE.md:7: names the file store/b.go, which is not there",
		}},
		{"too wide", head + "| `store`, `journal` | " + strings.Repeat("é", 97) + "|\n", []string{
			"PAGE.md:7: has 121 columns; over 120 it does not fit on a screen",
		}},
		{"too long", head + "| `store`, `journal` | |\n" + strings.Repeat("\n", 324), []string{
			"PAGE.md: has 331 lines; over 330 it is not read: package comments hold the details",
		}},
		{"one is missing", head + "| `store` | tasks |\n", []string{
			"PAGE.md: has no row for journal/filelog: add one with what it knows, and the law it keeps",
		}},
		{"one is gone", head + "| `store` | tasks |\n| `attic` | what was |\n| `journal/filelog` | a log |\n", []string{
			"PAGE.md:8: has a row for attic, which is not there",
		}},
		{"other modules, data and tests are no packages of the house", head + "| `store` | |\n| `journal/filelog` | |\n| `tools/x` | |\n| `task/testdata` | |\n| `internal/only` | |\n", []string{
			"PAGE.md:11: has a row for internal/only, which is not there",
			"PAGE.md:10: has a row for task/testdata, which is not there",
			"PAGE.md:9: has a row for tools/x, which is not there",
		}},
		{"only the first column names packages", head + "| `store` | knows `journal/filelog` |\n", []string{
			"PAGE.md: has no row for journal/filelog: add one with what it knows, and the law it keeps",
		}},
		{"no table at all", "# The house\n\n| name |\n|---|\n| `store` |\n", []string{
			`PAGE.md: has no table that begins with "| package |"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := CheckPage(treeOf(house, map[string]string{"PAGE.md": c.page}), module, "PAGE.md")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, texts(found)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCheckLinksReports(t *testing.T) {
	tree := treeOf(map[string]string{
		"PAGE.md": "# The house\n\n## A task on disk, `now`\n",
		"docs/a.md": "[one](../PAGE.md#a-task-on-disk-now) [two](../PAGE.md#the-house)\n[three](../PAGE.md#attic) [four](#here)\n" +
			"[five](https://example.org/a#b) [six](../PAGE.md) ![seven](img/none.svg)\n",
		"b.md": "# Here\n[one](#here)\n",
		"c.md": "[one](none.md#here) [two](docs)\n",
	})
	found, err := CheckLinks(tree, "docs/a.md", "b.md", "c.md")
	want := []string{
		"docs/a.md:2: links to PAGE.md#attic, which is not there", "docs/a.md:2: links to docs/a.md#here, which is not there",
		"docs/a.md:3: links to docs/img/none.svg, which is not there", "c.md:1: links to none.md, which is not there",
	}
	if diff := cmp.Diff(want, texts(found)); err != nil || diff != "" {
		t.Errorf("%v: -want +got\n%s", err, diff)
	}
	if _, err := CheckLinks(tree, "d.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestCheckPageNeedsItsPage(t *testing.T) {
	if _, err := CheckPage(treeOf(nil), module, "PAGE.md"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	broken := map[string]string{"PAGE.md": "| package |\n", "store/a.go": "packag"}
	if _, err := CheckPage(treeOf(broken), module, "PAGE.md"); err == nil || !strings.Contains(err.Error(), "store/a.go") {
		t.Errorf("%v does not name the file", err)
	}
}

// treeOf is a file tree of texts.
func treeOf(parts ...map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for _, files := range parts {
		for name, text := range files {
			tree[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return tree
}

func texts(found []Violation) []string {
	var out []string
	for _, v := range found {
		out = append(out, v.String())
	}
	return out
}
