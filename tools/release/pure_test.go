package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTheVersionIsTheTopEntry(t *testing.T) {
	for _, c := range []struct{ name, changelog, want, failure string }{
		{"dated", "# Changelog\n\nWords.\n\n## [1.2.3] - 2026-11-26\n\n## [1.2.2] - 2026-01-01\n", "1.2.3", ""},
		{"without a date", "## [0.1.0]\n", "0.1.0", ""},
		{"before a release", "## [2.0.0-rc.1] - 2026-11-26\n", "2.0.0-rc.1", ""},
		{"not released", "## [Unreleased]\n\n## [1.0.0] - 2026-11-26\n", "", `the top entry is "## [Unreleased]"`},
		{"half a number", "## [1.2] - 2026-11-26\n", "", "the top entry"},
		{"with a v", "## [v1.2.3] - 2026-11-26\n", "", "the top entry"},
		{"without brackets", "## 1.2.3\n", "", "the top entry"},
		{"empty", "# Changelog\n", "", "it has no entry"},
	} {
		got, err := versionOf(c.changelog)
		if got != c.want || (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
			t.Errorf("%s: got %q and error %v, want %q and an error with %q", c.name, got, err, c.want, c.failure)
		}
	}
}

func TestTargets(t *testing.T) {
	if got, err := targetsOf("all"); err != nil || len(got) != 6 {
		t.Errorf("all: got %v, %v, want six", got, err)
	}
	got, err := targetsOf("windows/arm64,linux/amd64")
	if err != nil || len(got) != 2 || got[0] != (target{"windows", "arm64"}) {
		t.Errorf("two: got %v, %v", got, err)
	}
	for _, list := range []string{"", "linux", "plan9/amd64", "linux/amd64,"} {
		if got, err := targetsOf(list); err == nil {
			t.Errorf("%q: got %v, want an error", list, got)
		}
	}
}

// someRelease is one whose programs are a few bytes.
func someRelease() *release {
	r := &release{
		Version: "1.2.3", Commit: commit{Hash: "c0ffee", Time: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)},
		Targets: allTargets, Programs: map[target][]byte{}, Log: io.Discard, Docs: []file{plain("LICENSE", []byte("L"))},
	}
	for _, t := range allTargets {
		r.Programs[t] = []byte("program for " + t.String())
	}
	return r
}

const someHelp = `Do a thing.
It takes a while:

  - as typed
  - twice

Then it ends \fB here.
.so /etc/passwd

Usage:
  roost thing [flags] ID

Examples:
  roost thing -- 'x'
.
Flags:
  -h, --help            help for thing
      --long-flag WORDS  first words
                         and the rest of them

Variables override the settings file, and flags override both:
  ROOST_A                     short
  ROOST_A_NAME_THAT_IS_LONGER one space

Use "roost [command] --help" for more information about a command.
`

const somePage = `.TH "ROOST\-THING" 1 "2026\-11\-26" "Roost 1.2.3" "Roost"
.SH NAME
roost\-thing \- do a thing
.SH "SYNOPSIS"
.nf
roost thing [flags] ID
.fi
.SH DESCRIPTION
Do a thing.
It takes a while:
.PP
.nf
\- as typed
\- twice
.fi
.PP
Then it ends \efB here.
\&.so /etc/passwd
.SH "EXAMPLES"
.nf
roost thing \-\- \(aqx\(aq
\&.
.fi
.SH "OPTIONS"
.TP
\fB\-h, \-\-help\fR
help for thing
.TP
\fB\-\-long\-flag WORDS\fR
first words
and the rest of them
.SH "ENVIRONMENT"
.TP
\fBROOST_A\fR
short
.TP
\fBROOST_A_NAME_THAT_IS_LONGER\fR
one space
`

func TestManPage(t *testing.T) {
	help := strings.Replace(someHelp, ".\nFlags", ".\n\nFlags", 1)
	got := manPage(command{Path: []string{"thing"}, Short: "Do a thing", Help: help}, *someRelease())
	if got != somePage {
		t.Errorf("got\n%s\nwant\n%s", got, somePage)
	}
}

// A page whose description is its summary does not say it twice.
func TestManPageWithoutDescription(t *testing.T) {
	thing := command{Path: []string{"thing"}, Short: "Do a thing", Help: "Do a thing\n\nUsage:\n  roost thing\n"}
	got := manPage(thing, *someRelease())
	if strings.Contains(got, "DESCRIPTION") || !strings.Contains(got, "roost thing\n.fi\n") {
		t.Errorf("got %q, want a synopsis and no description", got)
	}
}

// No text of help becomes a request or an escape of roff.
func FuzzRoff(f *testing.F) {
	for _, line := range []string{".so x", "'br", `\*x`, "-", ` .x`, `a\`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\r") {
			t.Skip()
		}
		got := roff(line)
		if strings.HasPrefix(got, ".") || strings.HasPrefix(got, "'") {
			t.Errorf("%q: got %q, which is a request", line, got)
		}
		ours := strings.NewReplacer(`\e`, "", `\-`, "", `\(aq`, "", `\(ga`, "", `\(ha`, "", `\(ti`, "")
		rest := ours.Replace(strings.TrimPrefix(got, `\&`))
		if strings.Contains(rest, `\`) {
			t.Errorf("%q: got %q, with an escape that is not ours", line, got)
		}
	})
}

func TestCommandsAndTheirPages(t *testing.T) {
	answers := map[string]string{
		"__complete help ":       "list\tList tasks\ntrash\tDeleted tasks\nhelp\tHelp\nexit-codes\n:4\n",
		"__complete help list ":  ":4\n",
		"__complete help trash ": "purge\tRemove them\n:4\n", "__complete help trash purge ": ":4\n",
		"help": "Roost.\n", "help list": "List tasks\n", "help trash": "Deleted tasks\n", "help trash purge": "Remove them\n",
		"help environment": "Variables override the settings file, and flags override both:\n  ROOST_ROOT  the root\n",
		"help exit-codes":  "Exit codes:\n    0  done\n",
	}
	pages, err := manPages(func(args ...string) (string, error) {
		text, known := answers[strings.Join(args, " ")]
		if !known {
			t.Errorf("the program was asked %q", args)
		}
		return text, nil
	}, *someRelease())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range pages {
		got[p.Name] = string(p.Data)
	}
	for name, want := range map[string][]string{
		"roost.1": {
			`\fBroost\-list\fR(1),` + "\n" + `\fBroost\-trash\fR(1)`, `.SH "ENVIRONMENT"`, `.SH "EXIT STATUS"`,
			`\fB0\fR` + "\ndone",
		},
		"roost-list.1":        {`\fBroost\fR(1)`},
		"roost-trash.1":       {`\fBroost\fR(1)`, `\fBroost\-trash\-purge\fR(1)`},
		"roost-trash-purge.1": {`\fBroost\-trash\fR(1)`},
	} {
		for _, text := range want {
			if !strings.Contains(got[name], text) {
				t.Errorf("%s: got\n%s\nwant it to have %q", name, got[name], text)
			}
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("got more pages: %v", got)
	}
}

func TestFormula(t *testing.T) {
	r := someRelease()
	var all []file
	for _, t := range allTargets {
		all = append(all, plain(r.asset(t, ".tar.gz"), r.Programs[t]))
	}
	files := r.formula(all)
	if len(files) != 1 || files[0].Name != "roost.rb" {
		t.Fatalf("got %v, want roost.rb", files)
	}
	got := string(files[0].Data)
	for _, want := range []string{
		`version "1.2.3"`, `man1.install Dir["man/man1/*.1"]`,
		"  on_macos do\n    on_arm do\n      url \"" + r.url("roost_1.2.3_darwin_arm64.tar.gz") + `"`,
		fmt.Sprintf("sha256 \"%x\"", sha256.Sum256(r.Programs[target{"darwin", "arm64"}])),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant it to have %q", got, want)
		}
	}
	if strings.Count(got, "url ") != 4 || strings.Count(got, " do\n") != strings.Count(got, "  end\n")-1 {
		t.Errorf("got\n%s\nwant four addresses, and an end for each do and def", got)
	}
	if got := r.formula(nil); got != nil {
		t.Errorf("without archives: got %v, want none", got)
	}
}

func TestScoopManifest(t *testing.T) {
	r := someRelease()
	files := r.scoop([]file{plain(r.asset(target{"windows", "amd64"}, ".zip"), []byte("zip"))})
	if len(files) != 1 {
		t.Fatalf("got %v, want roost.json", files)
	}
	var got struct {
		Version, Bin string
		Architecture map[string]struct {
			URL, Hash  string
			ExtractDir string `json:"extract_dir"`
		}
		Autoupdate struct {
			Architecture map[string]struct{ URL string }
		}
	}
	if err := json.Unmarshal(files[0].Data, &got); err != nil {
		t.Fatal(err)
	}
	a := got.Architecture["64bit"]
	if got.Version != "1.2.3" || got.Bin != "roost.exe" || len(got.Architecture) != 1 || len(a.Hash) != 64 ||
		a.ExtractDir != "roost_1.2.3_windows_amd64" ||
		a.URL != homepage+"/releases/download/v1.2.3/roost_1.2.3_windows_amd64.zip" {
		t.Errorf("got %+v, want the archive for amd64 with its checksum and folder", got)
	}
	want := homepage + "/releases/download/v$version/roost_$version_windows_amd64.zip"
	if got.Autoupdate.Architecture["64bit"].URL != want {
		t.Errorf("the next version: got %+v, want %s", got.Autoupdate, want)
	}
	if got := r.scoop(nil); got != nil {
		t.Errorf("without archives: got %v, want none", got)
	}
}

func TestPackagedUnit(t *testing.T) {
	got, err := packagedUnit([]byte("#   mkdir -p ~/x\n# Log.\n" +
		"ExecStart=/bin/sh -c 'PATH=\"%h/go/bin\"; exec roost serve --drain-timeout 30s'\nRestart=always\n"))
	want := "# Log.\nExecStart=/usr/bin/roost serve --drain-timeout 30s\nRestart=always\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, unit := range []string{
		"", "ExecStart=/opt/roost serve\n", "ExecStart=x 'exec roost a'\nExecStart=x 'exec roost b'\n",
	} {
		if got, err := packagedUnit([]byte(unit)); err == nil {
			t.Errorf("%q: got %q, want an error", unit, got)
		}
	}
}

func TestRootFolders(t *testing.T) {
	r := rootFolders{}
	if err := r.Set("amd64=/x=y"); err != nil || r["amd64"] != "/x=y" {
		t.Errorf("got %v, %v, want amd64 at /x=y", r, err)
	}
	for _, value := range []string{"", "amd64", "amd64=", "mips=/x"} {
		if err := r.Set(value); err == nil {
			t.Errorf("%q: got no error", value)
		}
	}
}

// What Roost adds to a system goes through the system's links and leaves its folders and users alone.
func TestOwnFilesWithinASystem(t *testing.T) {
	base := []file{{Name: "etc/passwd"}, {Name: "tmp"}, {Name: "etc", Link: "private/etc"}}
	own := []file{
		{Name: "usr/bin/roost"}, {Name: "etc/ssl/x"}, {Name: "tmp", Mode: someFolder}, {Name: "data", Mode: someFolder},
	}
	var got []string
	for _, f := range ownWithin(own, base) {
		got = append(got, f.Name)
	}
	if want := "usr/bin/roost private/etc/ssl/x data"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if got := ownWithin(own, nil); len(got) != len(own)+2 {
		t.Errorf("a system without users: got %d files, want passwd and group too", len(got))
	}
}

// A tar comes back as it was written; a hard link is a file of its own, and a device none.
func TestTar(t *testing.T) {
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	files := []file{
		program("usr/bin/x", []byte("x")), {Name: "bin", Mode: fs.ModeSymlink | 0o777, Link: "usr/bin"},
		{Name: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777}, {Name: "data", Mode: someFolder, UID: 5, GID: 6},
	}
	data, err := tarOf(files, at)
	if err != nil {
		t.Fatal(err)
	}
	for name, packed := range map[string][]byte{"plain": data, "compressed": gzipped(data)} {
		got, err := untar(packed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withFolders(files), got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "./a", Typeflag: tar.TypeReg, Size: 1, Mode: 0o755},
		{Name: "./b", Typeflag: tar.TypeLink, Linkname: "./a", Mode: 0o755}, {Name: "dev/null", Typeflag: tar.TypeChar},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write([]byte("A"))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := untar(b.Bytes())
	if err != nil || len(got) != 2 || got[1].Name != "b" || string(got[1].Data) != "A" || got[1].Link != "" {
		t.Errorf("got %+v, %v, want a and b, both with A", got, err)
	}
}

// A system for an image is a folder or a tar, and must have what a task needs.
func TestSystemsOfImages(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"usr/bin/sh", "bin/git", "etc/passwd"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files, err := baseFiles(t.Context(), dir, "arm64")
	if err != nil || len(files) != 7 {
		t.Fatalf("a folder: got %+v, %v, want three files in four folders", files, err)
	}
	packed, err := tarOf(files, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(archive, packed, 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := baseFiles(t.Context(), archive, "arm64")
	if diff := cmp.Diff(files, again, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("a tar: got %v, %s", err, diff)
	}
	if err := os.Remove(filepath.Join(dir, "bin/git")); err != nil {
		t.Fatal(err)
	}
	if _, err := baseFiles(t.Context(), dir, "arm64"); err == nil || !strings.Contains(err.Error(), "it has no git") {
		t.Errorf("without git: got %v", err)
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[host.Arch]
	if _, err := baseFiles(t.Context(), "host", other); err == nil || !strings.Contains(err.Error(), "-rootfs "+other) {
		t.Errorf("this machine for %s: got %v", other, err)
	}
}
