package api

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/joiner-sh/joiner/internal/emulator/world/failure"
)

// Page selects the part of a list that one answer contains.
type Page struct {
	Token string // token of the page, from the previous answer; empty: the first page
	Size  int    // maximum number of items; 0: no maximum
}

// PageOf returns a page of a list, and the token of the next page, which is empty after the last page. A token has the
// offset and the key of the first item of its page. If the list has changed, the key finds the item. If the item is
// gone, the page starts at the offset.
func PageOf[T any](items []T, key func(T) string, p Page) ([]T, string, error) {
	start := 0
	if p.Token != "" {
		offset, firstKey, ok := decodePageToken(p.Token)
		if !ok {
			return nil, "", &failure.Error{Code: "InvalidPaginationToken", Message: "The specified pagination token is not valid or is expired."}
		}
		start = min(offset, len(items))
		if start == len(items) || key(items[start]) != firstKey {
			for i, item := range items {
				if key(item) == firstKey {
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
	return items[:p.Size], encodePageToken(start+p.Size, key(items[p.Size])), nil
}

func encodePageToken(offset int, key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(offset) + "|" + key))
}

// decodePageToken returns the offset and the key of the first item of a token's page. ok is false if the text is not a
// token.
func decodePageToken(token string) (offset int, key string, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, "", false
	}
	number, key, found := strings.Cut(string(raw), "|")
	offset, err = strconv.Atoi(number)
	return offset, key, found && err == nil && offset >= 0
}

// Paged has the paging parameters of EC2's describe calls.
type Paged struct {
	MaxResults *int64 // maximum number of items of the page; nil: the action's default
	NextToken  string // from the previous answer; empty: the first page
}

// Page returns the requested page. Without MaxResults its size is defaultSize (0: no maximum). MaxResults above maxSize
// is reduced to maxSize. MaxResults below 1 is invalid.
func (p Paged) Page(defaultSize, maxSize int) (Page, error) {
	size := defaultSize
	if p.MaxResults != nil {
		if *p.MaxResults < 1 {
			return Page{}, InvalidValue("MaxResults", strconv.FormatInt(*p.MaxResults, 10))
		}
		size = min(int(*p.MaxResults), maxSize)
	}
	return Page{Token: p.NextToken, Size: size}, nil
}
