{{/* joiner.problem prints a sentence about the first invalid value, or nothing. The rules are in values.rules.json, a JSON schema. The templates
check them, and not Helm, because Helm's own messages do not suggest the correct name or value. */}}
{{- define "joiner.problem" -}}
{{- $rules := .Files.Get "values.rules.json" | fromJson -}}
{{- include "joiner.check" (dict "value" .Values "rule" $rules "path" "" "rules" $rules) -}}
{{- end -}}

{{/* joiner.check checks "value" against "rule" and prints a sentence about the first problem, or nothing. "path" is the name of the value in
messages. "rules" is the whole schema, with the definitions in "$defs". */}}
{{- define "joiner.check" -}}
{{- $rule := .rule -}}
{{- with get $rule "$ref" -}}
{{- $rule = get (get $.rules "$defs") (base .) -}}
{{- end -}}
{{- $at := dict "value" .value "rule" $rule "path" .path "rules" .rules -}}
{{- if not (include "joiner.fits" $at) -}}
{{- include "joiner.unfit" $at -}}
{{- else if kindIs "map" .value -}}
{{- include "joiner.check.map" $at -}}
{{- else if kindIs "slice" .value -}}
{{- include "joiner.check.list" $at -}}
{{- end -}}
{{- end -}}

{{- define "joiner.check.list" -}}
{{- $problem := "" -}}
{{- range $i, $item := .value -}}
{{- if and (not $problem) (hasKey $.rule "items") -}}
{{- $problem = include "joiner.check" (dict "value" $item "rule" $.rule.items "path" (printf "%s[%d]" $.path $i) "rules" $.rules) -}}
{{- end -}}
{{- end -}}
{{- $problem -}}
{{- end -}}

{{- define "joiner.check.map" -}}
{{- $known := .rule.properties | default dict -}}
{{- $more := true -}}
{{- if hasKey .rule "additionalProperties" -}}{{- $more = .rule.additionalProperties -}}{{- end -}}
{{- $problem := "" -}}
{{- range $key := keys .value | sortAlpha -}}
{{- $item := get $.value $key -}}
{{- $path := include "joiner.path" (dict "path" $.path "key" $key) -}}
{{- if not $problem -}}
{{- if hasKey $known $key -}}
{{- $problem = include "joiner.check" (dict "value" $item "rule" (get $known $key) "path" $path "rules" $.rules) -}}
{{- else if kindIs "map" $more -}}
{{- $problem = include "joiner.check" (dict "value" $item "rule" $more "path" $path "rules" $.rules) -}}
{{- else if and (not $more) (not (include "joiner.leftover" (dict "value" $item "path" $path "rules" $.rules))) -}}
{{- $problem = include "joiner.unknown" (dict "value" $item "key" $key "path" $.path "known" $known "rules" $.rules) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $key := .rule.required -}}
{{- if and (not $problem) (not (hasKey $.value $key)) -}}
{{- $problem = printf "%s is not set" (include "joiner.path" (dict "path" $.path "key" $key)) -}}
{{- end -}}
{{- end -}}
{{- range $key := .rule.kept -}}
{{- if and (not $problem) (kindIs "invalid" (index $.value $key)) -}}
{{- $problem = printf "%s is null: remove it to get its default" (include "joiner.path" (dict "path" $.path "key" $key)) -}}
{{- end -}}
{{- end -}}
{{- $problem -}}
{{- end -}}

{{/* joiner.path prints the path of "key" below "path": settings.clusterName, serviceAccount.annotations["eks.amazonaws.com/role-arn"]. */}}
{{- define "joiner.path" -}}
{{- if not (regexMatch "^[A-Za-z0-9_-]+$" .key) -}}
{{- printf "%s[%q]" .path .key -}}
{{- else if .path -}}
{{- printf "%s.%s" .path .key -}}
{{- else -}}
{{- .key -}}
{{- end -}}
{{- end -}}

{{/* joiner.fits prints "yes" if "value" satisfies "rule", without its items and keys. Null satisfies every rule: the value is not set. */}}
{{- define "joiner.fits" -}}
{{- $rule := .rule -}}
{{- $value := .value -}}
{{- $ok := true -}}
{{- if kindIs "invalid" $value -}}
{{- else if hasKey $rule "oneOf" -}}
{{- $ok = false -}}
{{- range $one := $rule.oneOf -}}
{{- with get $one "$ref" -}}{{- $one = get (get $.rules "$defs") (base .) -}}{{- end -}}
{{- if include "joiner.fits" (dict "value" $value "rule" $one "rules" $.rules) -}}{{- $ok = true -}}{{- end -}}
{{- end -}}
{{- else -}}
{{- $kind := include "joiner.kind" $value -}}
{{- $kinds := list -}}
{{- if hasKey $rule "type" -}}{{- $kinds = kindIs "slice" $rule.type | ternary $rule.type (list $rule.type) -}}{{- end -}}
{{- if and $kinds (not (has $kind $kinds)) (not (and (eq $kind "integer") (has "number" $kinds))) -}}
{{- $ok = false -}}
{{- else if and (hasKey $rule "enum") (not (has $value $rule.enum)) -}}
{{- $ok = false -}}
{{- else if eq $kind "string" -}}
{{- $ok = and (or (not (hasKey $rule "pattern")) (regexMatch ($rule.pattern | default "") $value)) (or (not (get $rule "encoded")) (include "joiner.encoded" (dict "value" $value "start" $rule.encoded))) -}}
{{- else if or (eq $kind "integer") (eq $kind "number") -}}
{{- $ok = eq (include "joiner.bounded" (dict "value" $value "rule" $rule) | float64) (float64 $value) -}}
{{- if and (hasKey $rule "exclusiveMaximum") (ge (float64 $value) (float64 $rule.exclusiveMaximum)) -}}{{- $ok = false -}}{{- end -}}
{{- if and (hasKey $rule "exclusiveMinimum") (le (float64 $value) (float64 $rule.exclusiveMinimum)) -}}{{- $ok = false -}}{{- end -}}
{{- else if and (eq $kind "object") (hasKey $rule "maxProperties") -}}
{{- $ok = le (len $value) (int $rule.maxProperties) -}}
{{- end -}}
{{- end -}}
{{- if $ok -}}yes{{- end -}}
{{- end -}}

{{/* joiner.encoded prints "yes" if "value" is empty, or base64 of a text that begins with "start". */}}
{{- define "joiner.encoded" -}}
{{- if or (not .value) (hasPrefix .start (b64dec .value)) -}}yes{{- end -}}
{{- end -}}

{{/* joiner.kind prints the JSON schema type of a value. */}}
{{- define "joiner.kind" -}}
{{- if kindIs "map" . -}}object
{{- else if kindIs "slice" . -}}array
{{- else if kindIs "string" . -}}string
{{- else if kindIs "bool" . -}}boolean
{{- else if kindIs "float64" . -}}{{- if eq . (floor .) -}}integer{{- else -}}number{{- end -}}
{{- else if kindIs "invalid" . -}}null
{{- else -}}integer
{{- end -}}
{{- end -}}

{{/* joiner.bounded prints the number nearest to "value" that is within the minimum and maximum of "rule". */}}
{{- define "joiner.bounded" -}}
{{- $n := float64 .value -}}
{{- if hasKey .rule "minimum" -}}{{- $n = maxf $n .rule.minimum -}}{{- end -}}
{{- if hasKey .rule "maximum" -}}{{- $n = minf $n .rule.maximum -}}{{- end -}}
{{- include "joiner.plain" $n -}}
{{- end -}}

{{/* joiner.plain prints a value. A number has no exponent: 111122223333, not 1.11122223333e+11. */}}
{{- define "joiner.plain" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) -}}{{- printf "%.0f" . -}}{{- else -}}{{- . -}}{{- end -}}
{{- end -}}
