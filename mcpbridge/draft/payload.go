package draft

import (
	"encoding/json"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// value is one decoded payload.
type value struct {
	json    json.RawMessage // nil for what is no JSON
	message string          // type of a protobuf message, "" for other values
	bytes   bool            // raw bytes
}

// decode reads payloads. The error names the first whose encoding nobody here knows, as that of a codec.
func decode(payloads *commonpb.Payloads) ([]value, error) {
	values := make([]value, 0, len(payloads.GetPayloads()))
	for i, payload := range payloads.GetPayloads() {
		v, err := decodeOne(payload)
		if err != nil {
			return nil, fmt.Errorf("value %d of %d: %w", i+1, len(payloads.GetPayloads()), err)
		}
		values = append(values, v)
	}
	return values, nil
}

func decodeOne(payload *commonpb.Payload) (value, error) {
	message := string(payload.GetMetadata()[converter.MetadataMessageType])
	switch encoding := string(payload.GetMetadata()[converter.MetadataEncoding]); encoding {
	case converter.MetadataEncodingNil:
		return value{json: json.RawMessage("null")}, nil
	case converter.MetadataEncodingBinary:
		return value{bytes: true}, nil
	case converter.MetadataEncodingProto:
		return value{message: message}, nil
	case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
		if !json.Valid(payload.GetData()) {
			return value{}, fmt.Errorf("its encoding is %s, but it is no JSON", encoding)
		}
		return value{json: payload.GetData(), message: message}, nil
	default:
		return value{}, fmt.Errorf("its encoding %q is that of a codec which is missing here", encoding)
	}
}
