import t from 'tap'
import { parseChallenges } from '../../../src/cli/pay/mpp.ts'

function read(header: string): [string, Record<string, string>][] {
  return parseChallenges(header).map(({ scheme, parameters }) => [scheme, Object.fromEntries(parameters)])
}

t.test('reads challenges as sellers write them', async (t) => {
  for (const [header, challenges] of [
    ['', []],
    [' , ', []],
    ['Payment', [['payment', {}]]],
    ['Payment id="a", realm="b"', [['payment', { id: 'a', realm: 'b' }]]],
    ['PAYMENT ID=a,realm = "b" ,, x=1 ,', [['payment', { id: 'a', realm: 'b', x: '1' }]]],
    [
      'Payment id="1", method="tempo", Payment id="2", method="stripe"',
      [
        ['payment', { id: '1', method: 'tempo' }],
        ['payment', { id: '2', method: 'stripe' }],
      ],
    ],
    [
      'Bearer realm="a, Payment id=\\"evil\\"", Payment id="2"',
      [
        ['bearer', { realm: 'a, Payment id="evil"' }],
        ['payment', { id: '2' }],
      ],
    ],
    [
      'Payment description="back\\\\slash, \\"quote\\" é", id=""',
      [['payment', { description: 'back\\slash, "quote" é', id: '' }]],
    ],
    [
      'Negotiate YWJjZA==, Payment id="2", Basic',
      [
        ['negotiate', {}],
        ['payment', { id: '2' }],
        ['basic', {}],
      ],
    ],
  ] as const) {
    t.same(read(header), challenges, header)
  }
})

t.test('leaves out challenges that are malformed', async (t) => {
  for (const [header, challenges] of [
    ['Payment id="a", realm="open', []],
    ['Payment id="1", Payment id="2" realm="b"', [['payment', { id: '1' }]]],
    ['Payment id="1", Payment id="2", realm=', [['payment', { id: '1' }]]],
    ['Payment id="1", amount="1", amount="2", Payment id="2"', [['payment', { id: '2' }]]],
    ['Payment id="1", ID="2"', []],
    ['id="1"', []],
    ['(Payment) id="1"', []],
  ] as const) {
    t.same(read(header), challenges, header)
  }
})
