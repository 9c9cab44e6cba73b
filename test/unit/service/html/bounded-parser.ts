import t from 'tap'
import { descendants, parsePage, textOf, type Element } from '../../../../src/service/html/tree.ts'

const depthOf = (element: Element): number => {
  const inner = element.children.filter((child): child is Element => typeof child === 'object')
  return 1 + Math.max(0, ...inner.map(depthOf))
}

t.test('makes siblings of what is nested too deeply, and loses no text', async (t) => {
  const { root } = parsePage(`${'<div>'.repeat(100_000)}<p>deep<p>down${'</div>'.repeat(100_000)}<p>after`)
  t.ok(depthOf(root) <= 402, `${depthOf(root)} levels`)
  t.equal([...descendants(root)].length, 100_003)
  t.match(textOf(root), /^deepdownafter$/)
})

t.test('closes elements below the limit again', async (t) => {
  const { root } = parsePage(`<main>${'<i>'.repeat(500)}${'</i>'.repeat(500)}<p>one</p></main><p>two`)
  const [main, paragraph] = root.children
  t.match(paragraph, { tag: 'p', children: ['two'] })
  t.match(main, { tag: 'main' })
})

t.test('keeps at most a hundred attributes of an element, the first of each name', async (t) => {
  const many = Array.from({ length: 1000 }, (_, n) => `a${n}=1 A${n}=2`).join(' ')
  const [element] = descendants(parsePage(`<p ${many}>`).root)
  t.equal(element?.attributes.size, 100)
  t.equal(element?.attributes.get('a0'), '1')
})

t.test('gives the attributes of a form inside a form to no element', async (t) => {
  const { root } = parsePage('<form><p>shown<form hidden style="display:none">')
  for (const { attributes } of descendants(root)) t.equal(attributes.size, 0)
})

t.test('joins text and entities, and decodes all of HTML', async (t) => {
  const { root } = parsePage('<p>a &amp; b &NotEqualTilde; &#128; &copy 2026</p>')
  t.match(root.children, [{ tag: 'p', children: ['a & b ≂̸ € © 2026'] }])
})
