//go:build unix

package filelog_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// asNobody makes cmd run as a user who may read the folder and not write it.
func asNobody(cmd *exec.Cmd, dir string) error {
	if os.Getuid() != 0 {
		return readOnly(dir)
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if at == dir || info.Mode()&0o005 != 0o005 && at != os.TempDir() {
			if err := os.Chmod(at, 0o755); err != nil {
				return errors.New("the folders above cannot be opened to another user: " + err.Error())
			}
		}
	}
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Chmod(name, 0o644); err != nil {
			return err
		}
	}
	// The test program may lie where only root gets in.
	program := filepath.Join(dir, "..", "program")
	data, err := os.ReadFile(cmd.Path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(program, data, 0o755); err != nil { //nolint:gosec // another user must run it
		return err
	}
	cmd.Path = program
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534, NoSetGroups: true}}
	return nil
}

func readOnly(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range names {
		err = errors.Join(err, os.Chmod(name, 0o400))
	}
	return errors.Join(err, os.Chmod(dir, 0o500)) //nolint:gosec // that is what is tested
}
