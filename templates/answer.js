// How pages show code, answers and failures: what page.js and pay.js share.

export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

export function reasonsOf(detail) {
  if (!Array.isArray(detail)) return detail
  return detail.map(({ loc, msg }) => `${loc.at(-1)}: ${msg}`).join('; ')
}

export function notice(...words) {
  return element('p', { className: 'notice' }, ...words)
}

/** Strings, with the names of members apart, then notes, words and values, in any of the languages that pages show. */
const PARTS =
  /(?<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')(?<colon>\s*:)?|(?<note>(?<![^\s])(?:#|\/\/).*)|(?<word>\b(?:import|from|const|await|new|print|curl|npx|claude)\b)|(?<value>\b(?:true|false|null|\d+(?:\.\d+)?)\b)/g

/** Above this, colours cost more time than they save. */
const LONGEST_COLOURED = 100_000

const colours = new Map(
  ['text', 'name', 'note', 'word', 'value'].map((kind) => [kind, globalThis.Highlight && new Highlight()]),
)
for (const [kind, colour] of colours) if (colour) CSS.highlights.set(`code-${kind}`, colour)

/** Colours code without a change to its text or its elements. */
export function colourCode(code) {
  const text = code.firstChild
  if (!globalThis.Highlight || text?.nodeType !== Node.TEXT_NODE || text.length > LONGEST_COLOURED) return
  for (const colour of colours.values())
    for (const range of colour) if (range.startContainer === text || !range.startContainer.isConnected) colour.delete(range)
  for (const { index, groups } of text.data.matchAll(PARTS)) {
    const [[found, match]] = Object.entries(groups).filter(([, part]) => part !== undefined)
    const range = new Range()
    range.setStart(text, index)
    range.setEnd(text, index + match.length)
    colours.get(groups.colon === undefined ? found : 'name').add(range)
  }
}

/** Adds colours and a button that copies to code. */
export function dress(pre) {
  const button = element('button', { type: 'button', className: 'copy' }, 'Copy')
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(pre.textContent)
    button.textContent = 'Copied'
    setTimeout(() => (button.textContent = 'Copy'), 2000)
  })
  const box = element('div', { className: 'code' })
  pre.replaceWith(box)
  box.append(pre, button)
  colourCode(pre.firstElementChild)
  return box
}

/** An answer as it is shown: text, or a file to save. */
export async function present(body) {
  const type = body.type.replace(/;.*/, '')
  const isJson = /[/+]json$/.test(type)
  if (body.size === 0) return element('p', { className: 'soft' }, 'The answer is empty.')
  if (!isJson && !type.startsWith('text/')) {
    const link = element('a', { href: URL.createObjectURL(body), download: '' }, 'Save the answer')
    return element('p', {}, link, ` (${type}, ${body.size} bytes)`)
  }
  const text = await body.text()
  const shown = isJson ? JSON.stringify(JSON.parse(text), undefined, 2) : text
  const box = element('div', {}, element('pre', { tabIndex: 0 }, element('code', {}, shown)))
  return dress(box.firstChild)
}
