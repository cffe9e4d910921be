package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/mcp"
)

// placeOf is a place whose files are below a folder of the test.
func placeOf(t *testing.T) (Place, string) {
	t.Helper()
	dir := t.TempDir()
	return placeIn(dir), filepath.Join(dir, "config.toml")
}

// Several settings change together, or none does; the rest of the file stays as it is.
func TestChangeIsAllOrNothing(t *testing.T) {
	p, file := placeOf(t)
	const was = "# mine\nmodel = \"a\" # why\neffort = \"low\"\n"
	if err := os.WriteFile(file, []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]map[string][]string{
		"an unknown setting":          {"model": {"b"}, "nothing": {"c"}},
		"a value that does not fit":   {"model": {"b"}, "max_turns": {"many"}},
		"two values for a single one": {"model": {"b", "c"}},
		"a password in an address":    {"providers.openai.base_url": {"https://me:secret@example.org"}},
		"an address without http":     {"providers.openai.base_url": {"localhost:11434"}},
		"an empty entry":              {"allow_tools": {""}},
		"an empty address":            {"base_url": {""}},
		"an empty model":              {"model": {""}},
		"an empty server":             {"server": {""}},
		"a text that is no UTF-8":     {"model": {"a\xff"}},
		"an entry that is no UTF-8":   {"allow": {"ls", "a\xff"}},
		"a folder that is relative":   {"root": {"here"}},
		"a cache that is relative":    {"cache": {"here"}},
		"a webhook that all can read": {"notify_webhook": {"http://example.org/secret"}},
	} {
		err := p.Change(t.Context(), set, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Misused {
			t.Errorf("%s: got %v, want a misuse", name, err)
		} else if text := e.Error() + e.Try; strings.Contains(text, "secret") {
			t.Errorf("%s: got %q, want no secret in it", name, text)
		}
		if got, _ := os.ReadFile(file); string(got) != was {
			t.Errorf("%s: the file is %q, want %q", name, got, was)
		}
	}
	if err := p.Change(t.Context(), map[string][]string{"model": {"b"}, "allow": {"go test", "ls"}}, []string{"effort"}); err != nil {
		t.Fatal(err)
	}
	const want = "# mine\nmodel = \"b\" # why\nallow = [\"go test\", \"ls\"]\n"
	if got, _ := os.ReadFile(file); string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What names a program, an address, a folder or a right is not plain, whatever is added later.
func TestPlainSettings(t *testing.T) {
	for _, name := range []string{
		"linter", "hooks.x.command", "providers.openai.base_url", "base_url", "root", "sources", "server", "approve", "allow", "allow_tools",
		"profiles.x.api_key", "profiles.x.base_url", "profile", "web.private_hosts", "cors_origin", "tools.include", "deny", "cache",
	} {
		k, known := Find(name)
		if !known || k.Plain() {
			t.Errorf("%s: known %v, plain %v; want a known setting that is not plain", name, known, k.Plain())
		}
	}
	for _, name := range plain {
		if _, known := Find(name); !known {
			t.Errorf("%s is plain, and no setting", name)
		}
	}
}

// A server of the user is defined once, and goes; one of a project is named, not touched.
func TestAddAndRemoveServer(t *testing.T) {
	p, _ := placeOf(t)
	own := mcp.Server{Scope: mcp.Own, File: filepath.Join(p.Dir, "mcp.json")}
	n := api.NewMCPServer{Name: "docs", Command: "docs-server", Args: []string{"--stdio"}}
	if _, err := p.AddServer(t.Context(), own, n); err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := p.AddServer(t.Context(), own, n); !errors.As(err, &e) || e.Kind != Taken {
		t.Errorf("got %v, want that the name is taken", err)
	}
	own.Name = "docs"
	if err := p.RemoveServer(t.Context(), own, mcp.Logins{Dir: filepath.Join(p.Dir, "logins")}, p.Dir, nil); err != nil {
		t.Fatal(err)
	}
	theirs := mcp.Server{Name: "docs", Scope: mcp.Workspace, File: "/w/.roo/mcp.json"}
	err := p.RemoveServer(t.Context(), own, mcp.Logins{}, p.Dir, []mcp.Server{theirs})
	if !errors.As(err, &e) || e.Kind != Missing || !strings.Contains(e.Why, theirs.File) {
		t.Errorf("got %v, want that it is in %s", err, theirs.File)
	}
}

// A profile's name may begin with another one's and a dot: both have a key of their own, whichever came first.
func TestKeysOfNamesWithDots(t *testing.T) {
	keyring.MockInit()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "mock")
	for _, file := range []string{"", "profiles.old = \"k\"\n", "[profiles]\nold = \"k\"\n"} {
		for _, names := range [][]string{{"a", "a.b"}, {"a.b", "a"}, {"a.b.c", "a.b", "x.y", "a"}} {
			p, settings := placeOf(t)
			if err := os.WriteFile(filepath.Join(filepath.Dir(settings), SecretFile), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, round := range []string{"1", "2"} {
				for _, name := range names {
					if _, err := p.SetKey(t.Context(), "profiles."+name, name, name+round, false); err != nil {
						t.Fatalf("%q, %v: the key of %s: got %v, want no error", file, names, name, err)
					}
				}
			}
			kept, err := p.Secrets()
			for _, name := range names {
				if err != nil || kept.Key("profiles."+name) != name+"2" {
					t.Errorf("%q, %v: got %v, the key %q for %s, want %q", file, names, err, kept.Key("profiles."+name), name, name+"2")
				}
			}
			for i, name := range names { // into the keyring, one after the other
				if _, err := p.SetKey(t.Context(), "profiles."+name, name, name+"3", true); err != nil {
					t.Fatalf("%q, %v: the key of %s in the keyring: got %v, want no error", file, names, name, err)
				}
				kept, err := p.Secrets()
				for j, other := range names {
					key := "profiles." + other
					if err != nil || kept.InKeyring(key) != (j <= i) || (kept.Key(key) == other+"2") != (j > i) {
						t.Errorf("%q, %v: got %v, in the keyring %v, the key %q for %s, want the keyring after %s", file, names, err,
							kept.InKeyring(key), kept.Key(key), other, name)
					}
				}
			}
		}
	}
}

// A settings file that is a link to nothing is not one without settings: its target may be on a disk that is missing.
func TestALinkToNothing(t *testing.T) {
	for _, name := range []string{"config.toml", SecretFile} {
		p, settings := placeOf(t)
		link := filepath.Join(filepath.Dir(settings), name)
		if err := os.Symlink(filepath.Join(t.TempDir(), "gone"), link); err != nil {
			t.Skip("this system makes no links:", err)
		}
		err := p.Change(t.Context(), map[string][]string{"model": {"b"}}, nil)
		if name == SecretFile {
			_, err = p.SetKey(t.Context(), "anthropic", "anthropic", "k", false)
		}
		var e *Error
		if !errors.As(err, &e) || e.Kind != Broken || !strings.Contains(e.Why, "link") {
			t.Errorf("%s: got %v, want a broken file that is a link", name, err)
		}
		if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
			t.Errorf("%s: got %v, %v, want the link as it was", name, info.Mode(), err)
		}
	}
}
