package pagetest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

func (h *house) front() string {
	f := os.Getenv("PAGETEST_FRONT")
	if f == "" {
		return h.listen
	}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	a := l.Addr().String()
	l.Close()
	c := exec.Command(f, "http://"+h.listen, a)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { c.Process.Kill(); c.Wait() })
	for i := 0; i < 100; i++ {
		if k, err := net.Dial("tcp", a); err == nil {
			k.Close()
			return a
		}
		time.Sleep(20 * time.Millisecond)
	}
	panic(fmt.Sprint("no front"))
}
