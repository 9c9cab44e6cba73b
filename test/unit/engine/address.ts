import t from 'tap'
import { hasSoundChecksum, isAddress, sameAddress, toChecksum } from '../../../src/engine/base/address.ts'

/** The examples of EIP-55. */
const MIXED = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
]
const CAPITALS = ['0x52908400098527886E0F7030069857D2E4169EE7', '0x8617E340B3D01FA5F11F306F4090FD50E238070D']
const SMALL = ['0xde709f2102306220921060314715629080e2fb77', '0x27b1fdb04752bbc536007a920d24acb045561c26']

t.test('prints an address with its checksum', async (t) => {
  for (const address of [...MIXED, ...CAPITALS, ...SMALL]) {
    t.equal(toChecksum(address.toLowerCase()), address)
    t.equal(toChecksum(`0x${address.slice(2).toUpperCase()}`), address)
  }
})

t.test('refuses a payee with a mistyped letter', async (t) => {
  for (const address of MIXED) {
    t.ok(hasSoundChecksum(address))
    const index = address.search(/[a-f](?!.*[a-f])/)
    const swapped = `${address.slice(0, index)}${(address[index] ?? '').toUpperCase()}${address.slice(index + 1)}`
    t.notOk(hasSoundChecksum(swapped), swapped)
    t.notOk(
      hasSoundChecksum(address.replace(/\d(?=[^\d]*$)/, (digit) => String((Number(digit) + 1) % 10))),
      address,
    )
  }
})

t.test('accepts an address without a checksum', async (t) => {
  for (const address of MIXED) {
    t.ok(hasSoundChecksum(address.toLowerCase()))
    t.ok(hasSoundChecksum(`0x${address.slice(2).toUpperCase()}`))
  }
})

t.test('refuses everything but addresses', async (t) => {
  t.ok(MIXED.every(isAddress))
  const [address = ''] = MIXED
  const others = [
    '',
    '0x',
    address.slice(2),
    address.slice(0, -1),
    `${address}0`,
    address.replace('a', 'g'),
    `${address}\n`,
  ]
  for (const text of [...others, address.replace('0x', '0X'), ` ${address}`])
    t.notOk(isAddress(text), JSON.stringify(text))
})

t.test('accepts a payment to the same payee in another spelling', async (t) => {
  for (const address of MIXED) t.ok(sameAddress(address, address.toLowerCase()))
  t.notOk(sameAddress(MIXED[0] ?? '', MIXED[1] ?? ''))
})
