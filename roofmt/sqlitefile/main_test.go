package sqlitefile

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writerMode makes the test program a writer: another process that owns the database.
const writerMode = "SQLITEFILE_TEST_WRITER"

func TestMain(m *testing.M) {
	if file := os.Getenv(writerMode); file != "" {
		if err := write(file, os.Args[len(os.Args)-1]); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// write runs statements on one connection, says so, and stays until its input ends.
func write(file, statements string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	for s := range strings.SplitSeq(statements, ";") {
		if _, err := db.Exec(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

// writer starts a process that runs the statements and then holds what it holds, until it is killed at the end of the test.
func writer(t *testing.T, file string, statements ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], strings.Join(statements, ";"))
	cmd.Env = append(os.Environ(), writerMode+"="+file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the writer says %q (%v)", line, err)
	}
	return cmd
}

// database makes a database in this process and closes it.
func database(t testing.TB, statements ...string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "of another.db")
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: got %v, want no error", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// names are the values of the table's only column.
func names(file string) (list []string, err error) {
	err = Read(context.Background(), file, func(ctx context.Context, db *sql.DB) error {
		list = nil
		rows, err := db.QueryContext(ctx, "SELECT name FROM t ORDER BY rowid")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			list = append(list, name)
		}
		return rows.Err()
	})
	return list, err
}

// around is what lies beside the database, with bytes and times.
func around(t *testing.T, file string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(file), e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v %s %x\n", e.Name(), info.Mode(), info.ModTime(), raw)
	}
	return b.String()
}
