import { error, type Issue } from './issue.ts'
import type { Subject } from './subject.ts'

/** Who is to be known to a tool can be known: a payer where something is paid, a signer where nothing is. */
export function checkTools({ declared, document }: Subject): Issue[] {
  return Object.entries(declared.tools ?? {}).flatMap(([name, { requires }]) => {
    const spelling = document.spelling(['tools', name, 'price'])
    const position = document.at(['tools', name, 'requires'])
    if (requires === 'payer' && spelling === 'free') {
      const sentence = `nobody pays for ${name}, so no payer is known: give it a price, or write "requires: signer"`
      return [error('payer_without_price', position, sentence)]
    }
    if (requires === 'signer' && spelling !== undefined && spelling !== 'free') {
      const sentence = `${name} is paid for, and a payment tells who signed it: write "requires: payer", or "price: free"`
      return [error('signer_with_price', position, sentence)]
    }
    return []
  })
}
