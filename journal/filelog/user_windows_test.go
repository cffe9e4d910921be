package filelog_test

import (
	"errors"
	"os/exec"
)

func asNobody(*exec.Cmd, string) error {
	return errors.New("no second user to run as")
}
