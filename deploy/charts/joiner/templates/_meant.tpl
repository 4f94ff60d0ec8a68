{{/* joiner.unfit prints a sentence about a "value" that does not satisfy "rule": the value, the expected value, and a suggestion. */}}
{{- define "joiner.unfit" -}}
{{- $kind := include "joiner.kind" .value -}}
{{- $shown := get (dict "object" "a map" "array" "a list") $kind -}}
{{- if eq $kind "string" -}}{{- $shown = quote .value | trunc 120 -}}{{- else if not $shown -}}{{- $shown = include "joiner.plain" .value -}}{{- end -}}
{{- $path := .path | default "the values file" -}}
{{- printf "%s is %s: want %s%s" $path $shown (include "joiner.want" .rule) (include "joiner.hint" .) -}}
{{- end -}}

{{/* joiner.want prints in words which values the rule "." accepts. */}}
{{- define "joiner.want" -}}
{{- $words := dict "string" "a string" "boolean" "true or false" "integer" "a whole number" "number" "a number" "object" "a map" "array" "a list" "null" "nothing" -}}
{{- if .want -}}
{{- .want -}}
{{- else if .enum -}}
{{- printf "one of %s" (without .enum "" | join ", ") -}}
{{- else if .type -}}
{{- $kind := .type -}}
{{- if kindIs "slice" $kind -}}{{- $kind = first $kind -}}{{- end -}}
{{- get $words $kind -}}
{{- if and (hasKey . "minimum") (hasKey . "maximum") }} from {{ include "joiner.plain" .minimum }} to {{ include "joiner.plain" .maximum -}}
{{- else if hasKey . "minimum" }}, at least {{ include "joiner.plain" .minimum -}}
{{- end -}}
{{- else -}}
something else
{{- end -}}
{{- end -}}

{{/* joiner.hint prints the valid value that the user probably meant by the invalid "value", or nothing. Candidates are the text itself, in the
formats "try" of the rule, after its last character of "last", and in lower case. */}}
{{- define "joiner.hint" -}}
{{- $text := include "joiner.plain" .value -}}
{{- $meant := "" -}}
{{- if not (or (kindIs "map" .value) (kindIs "slice" .value)) -}}
{{- $tries := list -}}
{{- range $format := prepend (.rule.try | default list) "%s" -}}
{{- $tries = append $tries (printf $format (trimAll " \t\r\n\"'" $text)) -}}
{{- end -}}
{{- with .rule.last -}}{{- $tries = append $tries (regexReplaceAll (printf "^.*[%s]" .) $text "") -}}{{- end -}}
{{- $tries = append $tries (lower $text) -}}
{{- range $try := $tries -}}
{{- if and (not $meant) (include "joiner.fits" (dict "value" $try "rule" $.rule "rules" $.rules)) -}}
{{- $meant = kindIs "string" $.value | ternary $try (printf "%q, in quotes" $try) -}}
{{- if and (not (kindIs "string" $.value)) (ne $try $text) -}}{{- $meant = $try -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $meant -}}{{- $meant = include "joiner.otherKind" (dict "text" $text "rule" .rule "rules" .rules) -}}{{- end -}}
{{- if and (not $meant) .rule.enum -}}{{- $meant = include "joiner.nearest" (dict "word" $text "words" .rule.enum) -}}{{- end -}}
{{- end -}}
{{- if and $meant (eq $meant $text) (kindIs "string" .value) -}}{{- $meant = printf "%s, without quotes" $meant -}}{{- end -}}
{{- with $meant }} (did you mean {{ . }}?){{- end -}}
{{- end -}}

{{/* joiner.otherKind prints the boolean or number that "text" means if "rule" accepts it, or nothing. A number may be a percentage. */}}
{{- define "joiner.otherKind" -}}
{{- $plain := lower .text | trimAll " \t\r\n\"'%" -}}
{{- $truths := dict "true" "true" "yes" "true" "on" "true" "1" "true" "false" "false" "no" "false" "off" "false" "0" "false" -}}
{{- $truth := get $truths $plain | default (include "joiner.nearest" (dict "word" $plain "words" (list "true" "false"))) -}}
{{- $meant := "" -}}
{{- if $truth -}}
{{- if include "joiner.fits" (dict "value" (eq $truth "true") "rule" .rule "rules" .rules) -}}{{- $meant = $truth -}}{{- end -}}
{{- end -}}
{{- if and (not $meant) (regexMatch "^-?[0-9]+([.,][0-9]+)?$" $plain) -}}
{{- $n := float64 (replace "," "." $plain) -}}
{{- range $try := list $n (divf $n 100) (include "joiner.bounded" (dict "value" $n "rule" .rule) | float64) (include "joiner.bounded" (dict "value" (round $n 0) "rule" .rule) | float64) -}}
{{- if and (not $meant) (include "joiner.fits" (dict "value" $try "rule" $.rule "rules" $.rules)) -}}
{{- $meant = include "joiner.plain" $try -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $meant -}}
{{- end -}}

{{/* joiner.unknown prints a sentence about a "key" that is not among the "known" keys at "path", with a suggestion: a known key, or the only path
in the chart that ends with "key" or with a key of its "value". */}}
{{- define "joiner.unknown" -}}
{{- $keys := list .key -}}
{{- if kindIs "map" .value -}}{{- $keys = concat $keys (keys .value | sortAlpha) -}}{{- end -}}
{{- $all := include "joiner.paths" (dict "rule" .rules "path" "") | splitList "\n" -}}
{{- $path := include "joiner.path" (dict "path" .path "key" .key) -}}
{{- $near := include "joiner.nearest" (dict "word" .key "words" (keys .known) "folded" true) -}}
{{- $meant := "" -}}
{{- if $near -}}
{{- $meant = include "joiner.path" (dict "path" .path "key" $near) -}}
{{- end -}}
{{- if not (hasSuffix "]" .path) -}}
{{- range $key := $keys -}}
{{- $same := list -}}
{{- range $known := $all -}}
{{- if eq (include "joiner.fold" ($known | splitList "." | last)) (include "joiner.fold" $key) -}}{{- $same = append $same $known -}}{{- end -}}
{{- end -}}
{{- if and (not $meant) (eq (len $same) 1) -}}
{{- $meant = first $same -}}
{{- if ne $key $.key -}}{{- $path = include "joiner.path" (dict "path" $path "key" $key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $meant -}}
{{- with include "joiner.nearest" (dict "word" .key "words" (keys .known)) -}}
{{- $meant = include "joiner.path" (dict "path" $.path "key" .) -}}
{{- end -}}
{{- end -}}
{{- printf "there is no value %s" $path -}}
{{- with $meant }} (did you mean {{ . }}?)
{{- else -}}
{{- with keys .known | sortAlpha }}: {{ $.path | default "the chart" }} has {{ join ", " . }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* joiner.paths prints the paths of all values that a "rule" knows, one per line. */}}
{{- define "joiner.paths" -}}
{{- $out := list -}}
{{- range $key, $rule := .rule.properties -}}
{{- $path := include "joiner.path" (dict "path" $.path "key" $key) -}}
{{- $out = append $out $path -}}
{{- if $rule.properties -}}
{{- $out = concat $out (include "joiner.paths" (dict "rule" $rule "path" $path) | splitList "\n") -}}
{{- end -}}
{{- end -}}
{{- join "\n" $out -}}
{{- end -}}

{{/* joiner.nearest prints the word of "words" that is most similar to "word", by the rules of the controller: the fewest edits, at most a third
of the longer word; otherwise the shortest word that contains "word". If "folded" is true, it prints only a word that joiner.fold maps to the same text. */}}
{{- define "joiner.nearest" -}}
{{- $word := include "joiner.fold" .word -}}
{{- $best := "" -}}
{{- $bestDistance := 0 -}}
{{- $containing := "" -}}
{{- range $other := .words | sortAlpha -}}
{{- $plain := include "joiner.fold" $other -}}
{{- $maxDistance := $.folded | default false | ternary 0 (div (max (len $word) (len $plain)) 3) -}}
{{- $long := max (len $word) (len $plain) | int -}}
{{- $short := min (len $word) (len $plain) | int -}}
{{- if and $word $plain (le (sub $long $short) $maxDistance) -}}
{{- $distance := include "joiner.distance" (dict "a" $word "b" $plain) | int -}}
{{- if and (le $distance (int $maxDistance)) (or (not $best) (lt $distance (int $bestDistance))) -}}
{{- $best = $other -}}
{{- $bestDistance = $distance -}}
{{- end -}}
{{- end -}}
{{- if and (not $.folded) (ge (len $word) 3) (contains $word $plain) (or (not $containing) (lt (len $other) (len $containing))) -}}{{- $containing = $other -}}{{- end -}}
{{- end -}}
{{- $best | default $containing -}}
{{- end -}}

{{/* joiner.fold prints a word in lower case, without hyphens, underscores, dots and spaces. */}}
{{- define "joiner.fold" -}}
{{- lower . | replace "-" "" | replace "_" "" | replace "." "" | replace " " "" -}}
{{- end -}}

{{/* joiner.distance prints the edit distance of "a" and "b": insertions, deletions, substitutions, and swaps of neighboring letters. It
fills the table of distances between the beginnings of "a" and "b", row by row. */}}
{{- define "joiner.distance" -}}
{{- $a := splitList "" .a -}}
{{- $b := splitList "" .b -}}
{{- $twoAbove := list -}}
{{- $above := untilStep 0 (int (add1 (len $b))) 1 -}}
{{- range $i, $x := $a -}}
{{- $row := list (add1 $i | int) -}}
{{- range $j, $y := $b -}}
{{- $cost := add (index $above $j) (eq $x $y | ternary 0 1) -}}
{{- $cost = min $cost (add1 (index $above (int (add1 $j)))) (add1 (index $row $j)) -}}
{{- if and (gt $i 0) (gt $j 0) -}}
{{- if and (eq $x (index $b (int (sub $j 1)))) (eq $y (index $a (int (sub $i 1)))) -}}
{{- $cost = min $cost (add1 (index $twoAbove (int (sub $j 1)))) -}}
{{- end -}}
{{- end -}}
{{- $row = append $row (int $cost) -}}
{{- end -}}
{{- $twoAbove = $above -}}
{{- $above = $row -}}
{{- end -}}
{{- last $above -}}
{{- end -}}
