import t from 'tap'
import {
  readAddress,
  type Mistake,
} from '../../../../../../src/service/handlers/util/email-verify/email-address.ts'
import { suggestDomain } from '../../../../../../src/service/handlers/util/email-verify/typing-slip.ts'
import { fc } from '../../../../../support/fast-check.ts'

const A64 = 'a'.repeat(64)

t.test('reads addresses that RFC 5321, 5322 and 6531 allow', async (t) => {
  for (const [text, local, domain] of [
    ['Smith@example.com', 'Smith', 'example.com'],
    [' jdoe@machine.example.org ', 'jdoe', 'machine.example.org'],
    ['john.q.public@example.com', 'john.q.public', 'example.com'],
    ["!#$%&'*+-/=?^_`{|}~@example.com", "!#$%&'*+-/=?^_`{|}~", 'example.com'],
    ['"Joe.\\\\Blow"@example.com', '"Joe.\\\\Blow"', 'example.com'],
    ['"Abc@def"@example.com', '"Abc@def"', 'example.com'],
    ['"Fred Bloggs"@example.com', '"Fred Bloggs"', 'example.com'],
    ['"fred"@example.com', 'fred', 'example.com'],
    ['customer/department=shipping@example.com', 'customer/department=shipping', 'example.com'],
    ['a@[192.0.2.1]', 'a', '[192.0.2.1]'],
    ['a@[IPv6:2001:db8::1]', 'a', '[IPv6:2001:db8::1]'],
    ['用户@例子.广告', '用户', 'xn--fsqu00a.xn--4rr70v'],
    ['jane@BÜCHER.example', 'jane', 'xn--bcher-kva.example'],
    [`${A64}@example.com`, A64, 'example.com'],
    ['a@127.example', 'a', '127.example'],
  ] as const)
    t.match(readAddress(text), { local, domain }, text)
})

t.test('names the error in a malformed address', async (t) => {
  const mistakes: Readonly<Record<string, Mistake>> = {
    'Abc.example.com': 'no_at_sign',
    'Jane Doe <jane@example.com>': 'display_name',
    '@example.com': 'local_part_empty',
    '""@example.com': 'local_part_empty',
    '.jane@example.com': 'local_part_dots',
    'jane.@example.com': 'local_part_dots',
    'ja..ne@example.com': 'local_part_dots',
    'a@b@c@example.com': 'local_part_characters',
    'jane doe@example.com': 'local_part_characters',
    'jane(comment)@example.com': 'local_part_characters',
    'jane\u202e@example.com': 'local_part_characters',
    'jane\u0000@example.com': 'local_part_characters',
    [`${A64}a@example.com`]: 'local_part_too_long',
    [`${'ä'.repeat(33)}@example.com`]: 'local_part_too_long',
    'just"not"right@example.com': 'local_part_characters',
    '"open@example.com': 'quotes',
    '"a"b@example.com': 'quotes',
    '"a\u0007"@example.com': 'quotes',
    'jane@': 'domain_empty',
    'jane@exa mple.com': 'domain_characters',
    'jane@ex%61mple.com': 'domain_characters',
    'jane@example.com:25': 'domain_characters',
    'jane@under_score.com': 'domain_characters',
    'jane@example.com.': 'domain_labels',
    'jane@.example.com': 'domain_labels',
    'jane@-example.com': 'domain_labels',
    'jane@192.0.2.1': 'domain_labels',
    'jane@0x7f.1': 'domain_labels',
    [`jane@${'a'.repeat(64)}.com`]: 'domain_labels',
    'jane@[192.0.2.256]': 'address_literal',
    'jane@[2001:db8::1]': 'address_literal',
    'jane@[IPv6:fe80::1%eth0]': 'address_literal',
    'jane@[': 'address_literal',
    [`${A64}@${'a.'.repeat(100)}com`]: 'too_long',
  }
  for (const [text, mistake] of Object.entries(mistakes)) t.equal(readAddress(text), mistake, text)
})

t.test('reads any text, and accepts only names as domains', async () => {
  const part = fc.string({ unit: 'grapheme', maxLength: 40 })
  fc.assert(
    fc.property(
      fc.oneof(
        part,
        fc.tuple(part, part).map(([a, b]) => `${a}@${b}.com`),
      ),
      (text) => {
        const address = readAddress(text)
        if (typeof address === 'string' || address.kind === 'literal') return
        if (!/^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/.test(address.domain)) throw new Error(address.domain)
      },
    ),
  )
})

t.test('notices a typing error in a well-known domain, and accepts a good name of another', async (t) => {
  for (const [written, meant] of [
    ['gmial.com', 'gmail.com'],
    ['gmail.con', 'gmail.com'],
    ['gamil.cmo', 'gmail.com'],
    ['hotmial.com', 'hotmail.com'],
    ['hotnail.com', 'hotmail.com'],
    ['outlok.com', 'outlook.com'],
    ['yahooo.com', 'yahoo.com'],
    ['icluod.com', 'icloud.com'],
    ['protonmial.com', 'protonmail.com'],
  ] as const)
    t.equal(suggestDomain(written), meant, written)
  for (const good of [
    'gmail.com',
    'mail.com',
    'ymail.com',
    'cloud.com',
    'example.com',
    'yahoo.ca',
    'orange.com',
    'x.y',
  ])
    t.equal(suggestDomain(good), undefined, good)
})
