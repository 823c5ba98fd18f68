package run

import (
	"fmt"
	"os"
	"path/filepath"

	"tokenrouter/experiments/result"
)

// Merge copies the finished jobs of unfinished runs, such as shards from other machines, into the folder of
// another. All must be of the same spec. Run with Resume then goes on with what is still missing.
func Merge(into string, from ...string) error {
	want, err := os.ReadFile(filepath.Join(into, result.SpecFile))
	if err != nil {
		return fmt.Errorf("merge into %s: %w", into, err)
	}
	for _, dir := range from {
		got, err := os.ReadFile(filepath.Join(dir, result.SpecFile))
		if err != nil {
			return fmt.Errorf("merge %s: %w", dir, err)
		}
		if string(got) != string(want) {
			return fmt.Errorf("merge %s into %s: it is of another spec", dir, into)
		}
	}
	parts := filepath.Join(into, "parts")
	if err := os.MkdirAll(parts, 0o755); err != nil {
		return fmt.Errorf("merge: %w", err)
	}
	for _, dir := range from {
		if err := copyParts(parts, filepath.Join(dir, "parts")); err != nil {
			return fmt.Errorf("merge %s: %w", dir, err)
		}
	}
	return nil
}

// copyParts copies the files of finished jobs, each job's own record last: only that makes it finished.
func copyParts(into, from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, records := range []bool{false, true} {
		for _, e := range entries {
			extension := filepath.Ext(e.Name())
			if (extension == ".json") != records || extension == ".lock" {
				continue
			}
			text, err := os.ReadFile(filepath.Join(from, e.Name()))
			if err != nil {
				return err
			}
			if err := result.WriteFile(filepath.Join(into, e.Name()), text); err != nil {
				return err
			}
		}
	}
	return nil
}
