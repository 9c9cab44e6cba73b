import { defineDocument } from './document.ts'
import { manualOf } from './manual.ts'
import { readMarkdown } from './markdown.ts'
import { SANDBOX } from './wording.ts'

const print = readMarkdown('docs.md.hbs')

/** The manual in Markdown: the same content, for readers who pay by the character. */
export const docsMarkdown = defineDocument('docs-md', (catalog, facts) =>
  print({ sandbox: facts.sandbox ? SANDBOX : '', ...manualOf(catalog, facts) }),
)
