package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// url is where a file of the release lies once it is published.
func (r *release) url(name string) string {
	return homepage + "/releases/download/v" + r.Version + "/" + name
}

// published looks for the archive of a target, and gives its address and checksum.
func (r *release) published(all []file, t target, end string) (url, sum string, found bool) {
	for _, f := range all {
		if f.Name == r.asset(t, end) {
			return r.url(f.Name), fmt.Sprintf("%x", sha256.Sum256(f.Data)), true
		}
	}
	return "", "", false
}

// formula is the one for Homebrew, on macOS and Linux: for the targets that were built.
func (r *release) formula(all []file) []file {
	var systems strings.Builder
	for _, system := range []struct{ os, block string }{{"darwin", "on_macos"}, {"linux", "on_linux"}} {
		var archs strings.Builder
		for _, arch := range []struct{ arch, block string }{{"arm64", "on_arm"}, {"amd64", "on_intel"}} {
			if url, sum, found := r.published(all, target{system.os, arch.arch}, ".tar.gz"); found {
				fmt.Fprintf(&archs, "    %s do\n      url %q\n      sha256 %q\n    end\n", arch.block, url, sum)
			}
		}
		if archs.Len() > 0 {
			fmt.Fprintf(&systems, "  %s do\n%s  end\n\n", system.block, archs.String())
		}
	}
	if systems.Len() == 0 {
		return nil
	}
	return []file{plain("roost.rb", fmt.Appendf(nil, `class Roost < Formula
  desc %q
  homepage %q
  version %q
  license "Apache-2.0"

%s  def install
    bin.install "roost"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/roost.bash" => "roost"
    zsh_completion.install "completions/_roost"
    fish_completion.install "completions/roost.fish"
    doc.install "README.md", "CHANGELOG.md", "THIRD-PARTY-NOTICES.txt"
  end

  service do
    run [opt_bin/"roost", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/roost version")
  end
end
`, summary, homepage, r.Version, systems.String()))}
}

// scoop is the manifest for Scoop, on Windows.
func (r *release) scoop(all []file) []file {
	type download struct {
		URL        string `json:"url"`
		Hash       string `json:"hash,omitempty"`
		ExtractDir string `json:"extract_dir"`
	}
	now, next := map[string]download{}, map[string]download{}
	for arch, name := range map[string]string{"amd64": "64bit", "arm64": "arm64"} {
		t := target{"windows", arch}
		if url, sum, found := r.published(all, t, ".zip"); found {
			now[name] = download{URL: url, Hash: sum, ExtractDir: strings.TrimSuffix(r.asset(t, ".zip"), ".zip")}
			later := func(text string) string { return strings.ReplaceAll(text, r.Version, "$version") }
			next[name] = download{URL: later(url), ExtractDir: later(now[name].ExtractDir)}
		}
	}
	if len(now) == 0 {
		return nil
	}
	return []file{plain("roost.json", indented(map[string]any{
		"version": r.Version, "description": summary, "homepage": homepage, "license": "Apache-2.0",
		"architecture": now, "bin": "roost.exe",
		"checkver": map[string]string{"github": homepage},
		"autoupdate": map[string]any{
			"architecture": next, "hash": map[string]string{"url": "$baseurl/SHA256SUMS"},
		},
	}))}
}

// indented is JSON for people, with the signs of HTML as they are.
func indented(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(err) // plain data of this program
	}
	return b.Bytes()
}
