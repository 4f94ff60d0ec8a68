package api

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Page is the part of a list that one answer carries.
type Page struct {
	Token string // where it begins; empty: at the beginning
	Size  int    // most items
}

// PageOf returns the page of a list, and the token of the next one. A token names
// the item it begins with, so that a list may change between two pages.
func PageOf[T any](items []T, key func(T) string, p Page) ([]T, string, error) {
	start := 0
	if p.Token != "" {
		offset, name, ok := openToken(p.Token)
		if !ok {
			return nil, "", &failure.Error{Code: "InvalidPaginationToken", Message: "The specified pagination token is not valid or is expired."}
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
	if p.Size <= 0 || len(items) <= p.Size {
		return items, "", nil
	}
	return items[:p.Size], sealToken(start+p.Size, key(items[p.Size])), nil
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

// Paged are the parameters by which EC2's lists are read page by page.
type Paged struct {
	MaxResults *int64 // most items of the page; nil: the usual number of the action
	NextToken  string // from the last answer; empty: the first page
}

// Page returns the page asked for; without a size it is usual, and never more than most.
func (p Paged) Page(usual, most int) (Page, error) {
	size := usual
	if p.MaxResults != nil {
		if *p.MaxResults < 1 {
			return Page{}, InvalidValue("MaxResults", strconv.FormatInt(*p.MaxResults, 10))
		}
		size = min(int(*p.MaxResults), most)
	}
	return Page{Token: p.NextToken, Size: size}, nil
}
