package expression

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Values are the variables of evaluations. They are for one goroutine.
type Values struct {
	given   map[string]any
	decoded map[string]ref.Val
}

// NewValues returns variables by name: JSON, or anything else that encodes to it; nil JSON is null. Each is decoded when
// an expression first asks for it. Whole numbers keep all their digits within 64 bits.
func NewValues(given map[string]any) *Values {
	return &Values{given, map[string]ref.Val{}}
}

// ResolveName implements the library's activation.
func (v *Values) ResolveName(name string) (any, bool) {
	value, ok := v.decoded[name]
	if ok {
		return value, true
	}
	given, ok := v.given[name]
	if !ok {
		return nil, false
	}
	value, err := decode(given)
	if err != nil {
		value = types.NewErrFromString(fmt.Sprintf("%s is not JSON: %v", name, err))
	}
	v.decoded[name] = value
	return value, true
}

// Parent implements the library's activation.
func (v *Values) Parent() cel.Activation { return nil }

func decode(given any) (ref.Val, error) {
	encoded, ok := given.(json.RawMessage)
	if !ok || encoded == nil {
		var err error
		if encoded, err = json.Marshal(given); err != nil {
			return nil, err
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return valueOf(value), nil
}

// valueOf makes CEL's values, whose sizes are measured once, from Go's.
func valueOf(value any) ref.Val {
	switch v := value.(type) {
	case bool:
		return types.Bool(v)
	case json.Number:
		return number(v.String())
	case string:
		return types.String(v)
	case []any:
		items := make([]ref.Val, len(v))
		for i, item := range v {
			items[i] = valueOf(item)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, items)
	case map[string]any:
		members := make(map[ref.Val]ref.Val, len(v))
		for name, member := range v {
			members[types.String(name)] = valueOf(member)
		}
		return types.NewRefValMap(types.DefaultTypeAdapter, members)
	default:
		return types.NullValue
	}
}

// number keeps whole numbers exact as far as CEL can. Numbers beyond float64 are infinite, which has no JSON form again.
func number(digits string) ref.Val {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return types.Int(n)
	}
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return types.Uint(n)
	}
	n, _ := strconv.ParseFloat(digits, 64)
	return types.Double(n)
}

const tooLarge = "the result is too large"

var errTooLarge = errors.New(tooLarge)

// appendValue appends the JSON form of a value.
func appendValue(b []byte, value ref.Val) ([]byte, error) {
	if len(b) > maxResult {
		return nil, errTooLarge
	}
	switch v := value.(type) {
	case types.Null:
		return append(b, "null"...), nil
	case types.Bool:
		return strconv.AppendBool(b, bool(v)), nil
	case types.Int:
		return strconv.AppendInt(b, int64(v), 10), nil
	case types.Uint:
		return strconv.AppendUint(b, uint64(v), 10), nil
	case types.Double:
		return appendDouble(b, float64(v))
	case types.String:
		return appendString(b, string(v))
	case types.Bytes:
		return appendString(b, base64.StdEncoding.EncodeToString(v))
	case types.Timestamp:
		return appendString(b, v.Format(time.RFC3339Nano))
	case types.Duration:
		return appendString(b, v.String())
	case *types.Optional:
		if !v.HasValue() {
			return append(b, "null"...), nil
		}
		return appendValue(b, v.GetValue())
	case traits.Mapper:
		return appendMap(b, v)
	case traits.Lister:
		return appendList(b, v)
	}
	return nil, fmt.Errorf("a %s has no JSON form", value.Type().TypeName())
}

// appendDouble writes the shortest digits that stand for the number.
func appendDouble(b []byte, n float64) ([]byte, error) {
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return nil, errors.New("the number has no JSON form")
	}
	encoded, err := json.Marshal(n)
	return append(b, encoded...), err
}

func appendString(b []byte, s string) ([]byte, error) {
	if len(b)+len(s) > maxResult {
		return nil, errTooLarge
	}
	return appendEncoded(b, s), nil
}

// appendEncoded leaves <, > and & readable.
func appendEncoded(b []byte, s string) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // strings into a buffer cannot fail
	return append(b, bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))...)
}

func appendList(b []byte, list traits.Lister) ([]byte, error) {
	b = append(b, '[')
	first := true
	for it := list.Iterator(); it.HasNext() == types.True; first = false {
		if !first {
			b = append(b, ',')
		}
		var err error
		if b, err = appendValue(b, it.Next()); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, object traits.Mapper) ([]byte, error) {
	members := map[string]ref.Val{}
	for it := object.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map with keys of type %s has no JSON form; make them strings", key.Type().TypeName())
		}
		members[string(name)] = object.Get(key)
	}
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendString(b, name); err != nil {
			return nil, err
		}
		if b, err = appendValue(append(b, ':'), members[name]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
