// Package wording words what is said about names that there are not.
package wording

import (
	"fmt"
	"strings"
)

// Unknown words the complaint about a name that is none of the known ones.
func Unknown(what, name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf("unknown %s; did you mean %q?", what, near)
	}
	return fmt.Sprintf("unknown %s; known are %s", what, List(known, "and"))
}

// Nearest returns the known name that a typo most likely stands for, or "".
func Nearest(name string, known []string) string {
	best, bestDistance := "", max(1, len(name)/3)+1
	for _, k := range known {
		if len(name) > 2 && strings.HasPrefix(k, name) {
			return k
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// List joins names as in "a, b or c".
func List(names []string, conjunction string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}
