export type Found =
  /** The whole text is one value. */
  | { readonly kind: 'whole' }
  /** Objects and arrays that are in other text, trimmed; at least one. */
  | { readonly kind: 'among_text'; readonly values: readonly string[] }

const REASONING = /<(think|thinking|reasoning)>[\s\S]*?<\/\1>/gi
const FENCE = /```[a-z0-9]*[ \t]*\n?([\s\S]*?)```/gi
const MOST_VALUES = 1_000
/** Deeper values cannot be repaired. */
const DEEPEST = 500

/** Finds the objects and arrays in what a language model has written: after its reasoning, in fences, or in prose. */
export function findValues(text: string): Found {
  const said = text.replaceAll(REASONING, ' ').trim()
  const fenced = Array.from(said.matchAll(FENCE), ([, inside = '']) => inside.trim()).filter(startsValue)
  if (fenced.length > 0) return { kind: 'among_text', values: fenced.slice(0, MOST_VALUES) }
  const regions = regionsOf(said)
  const [first] = regions
  if (first === undefined) return { kind: 'whole' }
  // A literal, a list of lines, or a value with a slip outside its brackets: for the repair as a whole.
  if (regions.length === 1 && first.text.length === said.length && said.length === text.trim().length)
    return { kind: 'whole' }
  if (/^["'\d]/.test(said)) return { kind: 'whole' }
  const objects = regions.filter((region) => region.text.includes('{'))
  const chosen = objects.length > 0 ? objects : regions
  return { kind: 'among_text', values: chosen.slice(0, MOST_VALUES).map((region) => region.text) }
}

function startsValue(text: string): boolean {
  return text.startsWith('{') || text.startsWith('[')
}

interface Region {
  readonly text: string
}

const CLOSES: Readonly<Record<string, string>> = { '}': '{', ']': '[' }

/** Text between an opening bracket and its closing one or the end of the text; in one pass. */
function regionsOf(text: string): Region[] {
  const regions: Region[] = []
  let open: string[] = []
  let start = 0
  for (let place = 0; place < text.length; place += 1) {
    const sign = text.charAt(place)
    if (sign === '{' || sign === '[') {
      if (open.length === 0) start = place
      open.push(sign)
      if (open.length > DEEPEST) return []
    } else if (open.length > 0 && sign === '"') {
      place = endOfString(text, place)
    } else if (open.length > 0 && (sign === '}' || sign === ']')) {
      // A bracket that was left open closes with the one around it.
      const partner = open.lastIndexOf(CLOSES[sign] ?? '')
      if (partner !== -1) open = open.slice(0, partner)
      if (open.length === 0) regions.push({ text: text.slice(start, place + 1) })
    }
  }
  if (open.length > 0) regions.push({ text: text.slice(start) })
  return regions
}

/** The place of the closing quote; the opening one when the line ends without, for then it closes nothing. */
function endOfString(text: string, start: number): number {
  for (let place = start + 1; place < text.length; place += 1) {
    const sign = text.charAt(place)
    if (sign === '\\') place += 1
    else if (sign === '"') return place
    else if (sign === '\n') return start
  }
  return start
}
