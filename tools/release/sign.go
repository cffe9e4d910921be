package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// What a release says about its files: their checksums, the signature of that list, and the key to check it with.
const (
	sumsName      = "SHA256SUMS"
	signatureName = sumsName + ".minisig"
	publicName    = "minisign.pub"
)

// sign lists the checksums, and signs the list where there is a key.
func (r *release) sign(all []file) ([]file, error) {
	var sums bytes.Buffer
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range sorted {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.Data), f.Name)
	}
	out := []file{plain(sumsName, sums.Bytes())}
	if r.Key == "" {
		return out, nil
	}
	key, err := secretKey(r.Key, r.Password)
	if err != nil {
		return nil, err
	}
	trusted := "roost " + r.Version + " " + r.Commit.Hash
	signature := minisign.SignWithComments(key, sums.Bytes(), trusted, "signature of Roost's checksums")
	public, err := publicText(key)
	return append(out, plain(signatureName, signature), plain(publicName, public)), err
}

func secretKey(text, password string) (minisign.PrivateKey, error) {
	if minisign.IsEncrypted([]byte(text)) {
		key, err := minisign.DecryptKey(password, []byte(text))
		if err != nil {
			return key, fmt.Errorf("open the key in %s with the password in %s: %w", keyVariable, passwordVariable, err)
		}
		return key, nil
	}
	var key minisign.PrivateKey
	if err := key.UnmarshalText([]byte(text)); err != nil {
		return key, fmt.Errorf("read the key in %s, which holds the text of a minisign secret key: %w", keyVariable, err)
	}
	return key, nil
}

func publicText(key minisign.PrivateKey) ([]byte, error) {
	public, ok := key.Public().(minisign.PublicKey)
	if !ok {
		return nil, errors.New("the key has no public part")
	}
	text, err := public.MarshalText()
	return append(text, '\n'), err
}

// keygen makes a pair of keys: minisign.key, encrypted where there is a password, and minisign.pub.
func keygen(dir, password string) error {
	_, key, err := minisign.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	secret, err := key.MarshalText()
	if err == nil && password != "" {
		secret, err = minisign.EncryptKey(password, key)
	}
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	public, err := publicText(key)
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"minisign.key": secret, publicName: public} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("keep the key: %w", err)
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("keep the key: %w", err)
		}
	}
	return nil
}

// verify checks the signature of a release and the checksum of each file in its folder; a file without one fails too.
func verify(dir, keyFile string, out io.Writer) error {
	public, err := minisign.PublicKeyFromFile(keyFile)
	if err != nil {
		return fmt.Errorf("read the public key %q: %w", keyFile, err)
	}
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		return err
	}
	signature, err := os.ReadFile(filepath.Join(dir, signatureName))
	if err != nil {
		return fmt.Errorf("verify %s: it is not signed: %w", dir, err)
	}
	if !minisign.Verify(public, sums, signature) {
		return fmt.Errorf("verify %s: the signature of %s is not made with %s", dir, sumsName, keyFile)
	}
	left := map[string]bool{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		left[e.Name()] = !slices.Contains([]string{sumsName, signatureName, publicName}, e.Name())
	}
	count := 0
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); count++ {
		want, name, _ := strings.Cut(lines.Text(), "  ")
		data, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		if err != nil {
			return fmt.Errorf("verify %s: %w", dir, err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
			return fmt.Errorf("verify %s: the checksum of %s is %s, not %s", dir, name, got, want)
		}
		left[name] = false
	}
	for name, unknown := range left {
		if unknown {
			return fmt.Errorf("verify %s: %s has no checksum", dir, name)
		}
	}
	fmt.Fprintf(out, "signature and %d checksums are right\n", count)
	return nil
}
