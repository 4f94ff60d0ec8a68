package emulator

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world"
)

// page is the part of a list that one answer carries.
type page struct {
	token string // where it begins; empty: at the beginning
	size  int    // most items
}

// cut returns the page of a list, and the token of the next one. A token names
// the item it begins with, so that a list may change between two pages.
func cut[T any](items []T, key func(T) string, p page) ([]T, string, error) {
	start := 0
	if p.token != "" {
		offset, name, ok := openToken(p.token)
		if !ok {
			return nil, "", &world.Error{Code: "InvalidPaginationToken", Message: "The specified pagination token is not valid or is expired."}
		}
		start = min(offset, len(items))
		if start == len(items) || key(items[start]) != name {
			for i, item := range items {
				if key(item) == name {
					start = i
					break
				}
			}
		}
	}
	items = items[start:]
	if p.size <= 0 || len(items) <= p.size {
		return items, "", nil
	}
	return items[:p.size], sealToken(start+p.size, key(items[p.size])), nil
}

func sealToken(offset int, name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(offset) + "|" + name))
}

func openToken(token string) (offset int, name string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, "", false
	}
	number, name, found := strings.Cut(string(raw), "|")
	offset, err = strconv.Atoi(number)
	return offset, name, found && err == nil && offset >= 0
}

// paged are the parameters by which EC2's lists are read page by page.
type paged struct {
	MaxResults *int64
	NextToken  string
}

// page returns the page asked for; without a size it is usual, and never more than most.
func (p paged) page(usual, most int) (page, error) {
	size := usual
	if p.MaxResults != nil {
		if *p.MaxResults < 1 {
			return page{}, invalidValue("MaxResults", strconv.FormatInt(*p.MaxResults, 10))
		}
		size = min(int(*p.MaxResults), most)
	}
	return page{token: p.NextToken, size: size}, nil
}
