package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const someFolder = fs.ModeDir | 0o755

// repository makes a commit of a Roost that only says what the release tool asks it.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                "module " + module + "\n\ngo 1.26\n",
		"api/version.go":        "package api\n\nvar stamp string\n\nfunc Stamp() string { return stamp }\n",
		"cmd/roost/main.go":     fakeProgram,
		"CHANGELOG.md":          "## [1.2.3] - 2026-11-26\n",
		"README.md":             "# Roost\n",
		"LICENSE":               "Apache\n",
		"contrib/roost.service": "ExecStart=/bin/sh -c 'exec roost serve'\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "x"}, {"tag", "v1.2.3"}} {
		named := []string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org"}
		cmd := exec.CommandContext(t.Context(), "git", append(named, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

const fakeProgram = `package main

import (
	"fmt"
	"os"

	"` + module + `/api"
)

func main() {
	switch os.Args[1] {
	case "__complete":
		fmt.Println(":4")
	case "version":
		fmt.Println(api.Stamp())
	default:
		fmt.Println(os.Args[1:])
	}
}
`

// built builds a release for this machine; the folder has all that is published.
func built(t *testing.T, src, key string) string {
	t.Helper()
	r, err := newRelease(t.Context(), src, t.TempDir(), []target{host})
	if err != nil {
		t.Fatal(err)
	}
	r.Key, r.Log = key, io.Discard
	out := filepath.Join(t.TempDir(), "dist")
	if err := r.write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, elements ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elements...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReleaseOfThisMachine(t *testing.T) {
	if host.OS != "linux" {
		t.Skip("it looks into the packages of Linux")
	}
	src, keys := repository(t), t.TempDir()
	if err := keygen(keys, ""); err != nil {
		t.Fatal(err)
	}
	key := string(read(t, keys, "minisign.key"))
	first, second := built(t, src, key), built(t, src, key)
	if a, b := read(t, first, sumsName), read(t, second, sumsName); !bytes.Equal(a, b) {
		t.Errorf("the same commit has the checksums\n%s\nand\n%s", a, b)
	}

	// The archive has a program that knows its version and commit.
	r := &release{Version: "1.2.3"}
	files, err := untar(read(t, first, r.asset(host, ".tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		name := strings.TrimPrefix(f.Name, strings.TrimSuffix(r.asset(host, ""), ".")+"/")
		names = append(names, name)
		if name != "roost" {
			continue
		}
		path := filepath.Join(t.TempDir(), "roost")
		if err := os.WriteFile(path, f.Data, 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), path, "version").Output()
		c, _ := commitOf(t.Context(), src)
		if want := stampOf("1.2.3", c) + "\n"; err != nil || string(out) != want || strings.Contains(want, "modified") {
			t.Errorf("the program says %q, %v, want %q", out, err, want)
		}
	}
	for _, want := range []string{
		"LICENSE", "THIRD-PARTY-NOTICES.txt", "completions/_roost", "man/man1/roost.1", "roost", "roost.service",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("the archive has %v, want %s too", names, want)
		}
	}

	// npm gets the program for this machine only.
	os, cpu := npmPlatform(host)
	var about struct {
		Name                 string
		OptionalDependencies map[string]string
		OS, CPU              []string
	}
	platform := os + "-" + cpu
	for pack, check := range map[string]func() bool{
		"roost-dev-roost-1.2.3.tgz": func() bool { return about.OptionalDependencies[npmName+"-"+platform] == "1.2.3" },
		"roost-dev-roost-" + platform + "-1.2.3.tgz": func() bool {
			return slices.Equal(about.OS, []string{os}) && slices.Equal(about.CPU, []string{cpu})
		},
	} {
		files, err := untar(read(t, first, pack))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(files, func(f file) bool { return f.Name == "package/package.json" })
		if i < 0 || json.Unmarshal(files[i].Data, &about) != nil || !check() {
			t.Errorf("%s: got %+v", pack, about)
		}
	}
	var list struct{ Components []component }
	err = json.Unmarshal(read(t, first, r.asset(host, ".cdx.json")), &list)
	if err != nil || len(list.Components) != 1 || list.Components[0].Name != "std" {
		t.Errorf("the program is made of %+v, %v, want the standard library", list.Components, err)
	}
	for _, end := range []string{".deb", ".rpm", ".apk"} {
		if len(read(t, first, r.asset(host, end))) < 1000 {
			t.Errorf("%s is empty", end)
		}
	}

	if err := verify(first, filepath.Join(keys, publicName), io.Discard); err != nil {
		t.Error(err)
	}
}

func TestVerifyNoticesChanges(t *testing.T) {
	keys, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{keys, other} {
		if err := keygen(dir, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := keygen(keys, ""); err == nil {
		t.Error("a second key replaced the first one")
	}
	key := string(read(t, keys, "minisign.key"))
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, key, failure string
		change             func(dir string)
	}{
		{"as it was made", keys, "", func(string) {}},
		{"another key", other, "is not made with", func(string) {}},
		{"a changed file", keys, "the checksum of a", func(dir string) { write(dir, "a", "A!") }},
		{"a missing file", keys, "no such file", func(dir string) { _ = os.Remove(filepath.Join(dir, "a")) }},
		{"an added file", keys, "b has no checksum", func(dir string) { write(dir, "b", "B") }},
		{"changed checksums", keys, "is not made with", func(dir string) { write(dir, sumsName, "") }},
		{"no signature", keys, "not signed", func(dir string) { _ = os.Remove(filepath.Join(dir, signatureName)) }},
	} {
		r := &release{Version: "1.2.3", Key: key}
		files := []file{plain("a", []byte("A"))}
		signed, err := r.sign(files)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for _, f := range append(files, signed...) {
			write(dir, f.Name, string(f.Data))
		}
		c.change(dir)
		err = verify(dir, filepath.Join(c.key, publicName), io.Discard)
		if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.failure)
		}
	}
	r := &release{Version: "1.2.3"}
	if files, err := r.sign(nil); err != nil || len(files) != 1 || files[0].Name != sumsName {
		t.Errorf("without a key: got %v, %v, want checksums alone", files, err)
	}
	r.Key = "no key"
	if _, err := r.sign(nil); err == nil || !strings.Contains(err.Error(), keyVariable) {
		t.Errorf("with a bad key: got %v, want an error that names the variable", err)
	}
}

// A tree that holds more than the commit says so in what it builds.
func TestModifiedTree(t *testing.T) {
	src := repository(t)
	if err := os.WriteFile(filepath.Join(src, "more.go"), []byte("package x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := commitOf(t.Context(), src)
	if err != nil || !c.Modified || !strings.HasSuffix(stampOf("1.0.0", c), " modified") {
		t.Errorf("got %+v, %v, want it modified", c, err)
	}
	if _, err := commitOf(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder without git: got no error")
	}
}

func TestProxy(t *testing.T) {
	src, out := repository(t), t.TempDir()
	if err := proxy(t.Context(), src, "v1.2.3", out); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(out, filepath.FromSlash(module), "@v")
	if got := string(read(t, dir, "list")); got != "v1.2.3\n" {
		t.Errorf("list: got %q", got)
	}
	if got := string(read(t, dir, "v1.2.3.info")); !strings.Contains(got, `"Version":"v1.2.3","Time":"2`) {
		t.Errorf("info: got %s", got)
	}
	if !bytes.Equal(read(t, dir, "v1.2.3.mod"), read(t, src, "go.mod")) || len(read(t, dir, "v1.2.3.zip")) == 0 {
		t.Error("go.mod and archive are not those of the tag")
	}
	for _, tag := range []string{"v9.9.9", "1.2.3"} {
		if err := proxy(t.Context(), src, tag, t.TempDir()); err == nil {
			t.Errorf("%s: got no error", tag)
		}
	}
}

// The copy of this machine has what runs a task, and each library that it names.
func TestHostFiles(t *testing.T) {
	if host.OS != "linux" {
		t.Skip("other systems are not copied")
	}
	files, err := hostFiles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range mustHave {
		if !hasProgram(files, name) {
			t.Errorf("there is no %s among %d files", name, len(files))
		}
	}
	names := map[string]bool{}
	for _, f := range withFolders(files) {
		names[f.Name] = true
	}
	for _, f := range files {
		if filepath.IsAbs(f.Link) && !names[f.Link[1:]] {
			t.Errorf("%s leads to %s, which is not there", f.Name, f.Link)
		}
	}
}

// Only what an earlier release left is replaced.
func TestClear(t *testing.T) {
	for _, c := range []struct {
		name, file string
		refused    bool
	}{{"a new folder", "", false}, {"an earlier release", sumsName, false}, {"something else", "thesis.txt", true}} {
		dir := filepath.Join(t.TempDir(), "dist")
		if c.file != "" {
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, c.file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := clearFolder(dir)
		left, _ := os.ReadDir(dir)
		if (err != nil) != c.refused || len(left) > 0 != c.refused {
			t.Errorf("%s: got error %v and %d files left, want refused %t", c.name, err, len(left), c.refused)
		}
	}
}

// What is packed for each target has its form; the program in it is that of this machine, so that nothing is compiled.
func TestPackagesOfAllTargets(t *testing.T) {
	r, err := newRelease(t.Context(), repository(t), t.TempDir(), []target{host})
	if err != nil {
		t.Fatal(err)
	}
	r.Targets, r.Log, r.Roots = allTargets, io.Discard, rootFolders{"arm64": t.TempDir()}
	for _, target := range allTargets {
		r.Programs[target] = r.Programs[host]
	}
	for _, name := range []string{"sh", "git"} {
		path := filepath.Join(r.Roots["arm64"], "usr", "bin", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(t.TempDir(), "dist")
	if err := r.write(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	want := []string{
		sumsName, "roost.rb", "roost.json", "roost-dev-roost-1.2.3.tgz",
		"roost_1.2.3_image.tar", "roost_1.2.3_image-tasks.tar",
	}
	for _, target := range allTargets {
		platform, cpu := npmPlatform(target)
		want = append(want, r.asset(target, ".cdx.json"), "roost-dev-roost-"+platform+"-"+cpu+"-1.2.3.tgz")
		switch target.OS {
		case "windows":
			want = append(want, r.asset(target, ".zip"))
		case "linux":
			want = append(want, r.asset(target, ".deb"), r.asset(target, ".rpm"), r.asset(target, ".apk"))
			fallthrough
		default:
			want = append(want, r.asset(target, ".tar.gz"))
		}
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}

	data := read(t, out, r.asset(target{"windows", "arm64"}, ".zip"))
	packed, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, f := range packed.File {
		got = append(got, strings.TrimPrefix(f.Name, "roost_1.2.3_windows_arm64/"))
	}
	want = []string{
		"CHANGELOG.md", "LICENSE", "README.md", "THIRD-PARTY-NOTICES.txt", "completions/roost.ps1", "roost.exe",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the zip has %v, want %v", got, want)
	}

	// The image for tasks has the architecture whose system was named, with the system as its first layer.
	for name, architectures := range map[string][]string{"image": {"amd64", "arm64"}, "image-tasks": {"arm64"}} {
		blobs := map[string][]byte{}
		files, err := untar(read(t, out, "roost_1.2.3_"+name+".tar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			blobs[f.Name] = f.Data
		}
		top := manifest(t, blobs["index.json"])
		index := manifest(t, blobs["blobs/sha256/"+top.Manifests[0].Digest[7:]])
		var got []string
		for _, m := range index.Manifests {
			got = append(got, m.Platform.Architecture)
			image := manifest(t, blobs["blobs/sha256/"+m.Digest[7:]])
			first, err := untar(blobs["blobs/sha256/"+image.Layers[0].Digest[7:]])
			system, layers := hasProgram(first, "git"), len(image.Layers)
			if err != nil || system != (name == "image-tasks") || system != (layers == 2) {
				t.Errorf("%s: got %d layers, git in the first: %t, %v", name, layers, system, err)
			}
		}
		if !slices.Equal(got, architectures) {
			t.Errorf("%s: got %v, want %v", name, got, architectures)
		}
	}
}

type ociManifest struct {
	Manifests []struct {
		Digest   string
		Platform struct{ Architecture string }
	}
	Layers []struct{ Digest string }
}

func manifest(t *testing.T, data []byte) ociManifest {
	t.Helper()
	var m ociManifest
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m
}
