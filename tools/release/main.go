package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// Where the secret key of a release and its password come from.
const (
	keyVariable      = "ROOST_MINISIGN_KEY"
	passwordVariable = "ROOST_MINISIGN_PASSWORD"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	name, rest := "", args
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		name, rest = args[0], args[1:]
	}
	flags := flag.NewFlagSet(strings.TrimSpace("release "+name), flag.ContinueOnError)
	switch name {
	case "":
		return runBuild(ctx, flags, rest, out)
	case "keygen":
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return keygen(dirOf(flags, "."), os.Getenv(passwordVariable))
	case "verify":
		key := flags.String("key", "", "the `file` with the public key")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		return verify(dirOf(flags, "../../dist"), *key, out)
	case "proxy":
		src := flags.String("src", "../..", "the `folder` of the clone")
		to := flags.String("out", "", "the `folder` of the proxy")
		if err := flags.Parse(rest); err != nil {
			return err
		}
		if *to == "" || flags.NArg() != 1 {
			return errors.New("make a module proxy: name a folder and a tag: proxy -out DIR v1.2.3")
		}
		return proxy(ctx, *src, flags.Arg(0), *to)
	}
	return fmt.Errorf("release %s: there is no such command: use keygen, verify, proxy, or flags alone to build", name)
}

func dirOf(flags *flag.FlagSet, unnamed string) string {
	if flags.NArg() > 0 {
		return flags.Arg(0)
	}
	return unnamed
}

func runBuild(ctx context.Context, flags *flag.FlagSet, args []string, out io.Writer) error {
	src := flags.String("src", "../..", "the `folder` of Roost's repository")
	to := flags.String("out", "", "the `folder` for what is built, replaced (default dist in the repository)")
	targets := flags.String("targets", "all", "what to build for: all, or a `list` such as linux/amd64,darwin/arm64")
	roots := rootFolders{}
	flags.Var(roots, "rootfs", "`ARCH=PATH`: the system for the image that runs tasks, a folder or tar with sh and git; "+
		"ARCH=host copies this machine's (again for more)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("build a release: %q is no flag", flags.Arg(0))
	}
	if *to == "" {
		*to = filepath.Join(*src, "dist")
	}
	chosen, err := targetsOf(*targets)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "roost-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	r, err := newRelease(ctx, *src, scratch, chosen)
	if err != nil {
		return err
	}
	r.Roots, r.Key, r.Password, r.Log = roots, os.Getenv(keyVariable), os.Getenv(passwordVariable), out
	return r.write(ctx, *to)
}
