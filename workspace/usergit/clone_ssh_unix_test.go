//go:build unix

package usergit

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/testing/fixture"
)

// Clone over SSH, from OpenSSH's own server, which ssh starts for each connection in place of opening one. Nothing is ever
// asked for.
func TestCloneOverSSH(t *testing.T) {
	sshd, ssh := program(t, "sshd", "/usr/sbin/sshd"), program(t, "ssh", "/usr/bin/ssh")
	home, served, commit := serve(t)
	me := fixture.Must[*user.User](t)(user.Current())
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		name = filepath.Join(home, name)
		fixture.NoError(t, os.WriteFile(name, []byte(text), mode))
		return name
	}
	key := func(name string) (file, public string) {
		t.Helper()
		file = filepath.Join(home, name)
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", file).CombinedOutput(); err != nil {
			t.Fatalf("make a key: %v: %s", err, out)
		}
		return file, string(fixture.Must[[]byte](t)(os.ReadFile(file + ".pub")))
	}
	host, hostKey := key("host")
	known, knownKey := key("known")
	other, _ := key("other")
	config := write("sshd_config", fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\n"+
		"PermitRootLogin yes\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\n",
		host, write("authorized", knownKey, 0o600)), 0o600)
	if out, err := exec.Command(sshd, "-t", "-f", config).CombinedOutput(); err != nil {
		lacks(t, "sshd does not start: %v: %s", err, out)
	}
	hosts := write("known_hosts", "git.test "+hostKey, 0o600)
	// ssh reads its settings from the user's true home, whatever HOME is.
	fixture.NoError(t, os.Mkdir(filepath.Join(home, "bin"), 0o755))
	settings := filepath.Join(home, "ssh_config")
	write("bin/ssh", fmt.Sprintf("#!/bin/sh\nexec %s -F %s \"$@\"\n", ssh, settings), 0o755)
	t.Setenv("PATH", filepath.Join(home, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))

	app := served + "/app.git"
	for _, c := range []struct {
		name, remote, key, hosts string
		want                     string // of the error
	}{
		{name: "an address with a scheme", remote: "ssh://" + me.Username + "@git.test" + app, key: known, hosts: hosts},
		{name: "a short address", remote: me.Username + "@git.test:" + app, key: known, hosts: hosts},
		{name: "a port", remote: "ssh://" + me.Username + "@git.test:2222" + app, key: known, hosts: write("port", "[git.test]:2222 "+hostKey, 0o600)},
		{name: "another key", remote: me.Username + "@git.test:" + app, key: other, hosts: hosts, want: "Permission denied"},
		{name: "a key with a password", remote: me.Username + "@git.test:" + app, key: locked(t, known), hosts: hosts, want: "Permission denied"},
		{name: "an unknown host", remote: me.Username + "@git.test:" + app, key: known, hosts: os.DevNull, want: "Host key verification failed"},
		{name: "no such repository", remote: me.Username + "@git.test:" + served + "/none.git", key: known, hosts: hosts, want: "none.git"},
	} {
		t.Run(c.name, func(t *testing.T) {
			write("ssh_config", fmt.Sprintf("Host *\nProxyCommand %s -i -f %s\nIdentityFile %s\nIdentitiesOnly yes\n"+
				"UserKnownHostsFile %s\nGlobalKnownHostsFile %s\n", sshd, config, c.key, c.hosts, os.DevNull), 0o600)
			cloned(t, c.remote, commit, c.want)
		})
	}
}

// lacks skips a test where something is missing. CI installs it.
func lacks(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// program finds a program of OpenSSH.
func program(t *testing.T, name, path string) string {
	t.Helper()
	if found, err := exec.LookPath(name); err == nil {
		return found // sshd starts itself again, by its whole path
	}
	if _, err := os.Stat(path); err != nil {
		lacks(t, "OpenSSH's %s is not installed", name)
	}
	return path
}

// locked returns a copy of a key that a password protects.
func locked(t *testing.T, key string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "locked")
	fixture.NoError(t, os.WriteFile(file, fixture.Must[[]byte](t)(os.ReadFile(key)), 0o600))
	if out, err := exec.Command("ssh-keygen", "-q", "-p", "-N", "a password", "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("protect a key: %v: %s", err, out)
	}
	return file
}
