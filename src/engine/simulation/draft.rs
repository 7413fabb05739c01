//! Draws a plan from a seed: a node of up to ten pods that lives, and everything that may go wrong
//! meanwhile.
//!
//! What happens on the node is drawn from what is possible there; trouble is drawn blindly.

use super::act::{Act, Character, Method, Named, PODS, Plan, Step};
use super::node::Node;
use crate::engine::model::Dice;
use crate::lifecycle::Mark;

/// The most steps of a plan.
const STEPS: u64 = 60;
/// Containers of a pod, by name.
const NAMES: u64 = 3;

impl Plan {
    /// The plan of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut draft = Draft {
            // Neighbouring seeds must not give neighbouring streams of dice.
            dice: Dice::seeded(seed.wrapping_mul(0xd605_1ab3_9c1e_e6a5) ^ 0x5eed),
            node: Node::default(),
            pods: 1,
            severity: 0,
        };
        draft.plan(seed)
    }
}

struct Draft {
    dice: Dice,
    node: Node,
    pods: u64,
    /// How much goes wrong, of 4.
    severity: u64,
}

impl Draft {
    fn plan(&mut self, seed: u64) -> Plan {
        self.pods = match self.dice.below(3) {
            0 => 1,
            1 => 1 + self.dice.below(3),
            _ => 1 + self.dice.below(u64::from(PODS)),
        };
        self.severity = self.dice.below(5);
        let character = Character {
            events: self.dice.below(12) > 0,
            keeps_messages: self.dice.below(3) == 0,
            capacity: 1 + usize::from(self.small(6)),
            latency: 1 + u32::from(self.small(40)),
        };
        let mut initial = Vec::new();
        for pod in 0..u8::try_from(self.pods).unwrap_or(PODS) {
            if self.dice.below(3) > 0 {
                let act = Act::Run {
                    pod,
                    containers: self.small(NAMES + 1),
                };
                self.happens(act);
                initial.push(act);
            }
        }
        let length = 4 + self.dice.below(STEPS - 4);
        let mut steps = Vec::new();
        if self.dice.below(2) == 0 {
            // The stream has been trusted for long.
            steps.push(Step {
                after: 2_000_000 + u32::from(self.small(100)),
                act: Act::Relist { pod: 0 },
            });
        }
        for _ in 0..length {
            let after = self.gap();
            let act = self.act();
            self.happens(act);
            steps.push(Step { after, act });
        }
        Plan {
            seed,
            character,
            initial,
            steps,
        }
    }

    fn happens(&mut self, act: Act) {
        for change in self.node.changes(act).into_iter().flatten() {
            self.node.make_true(change, Mark::default());
        }
    }

    fn small(&mut self, below: u64) -> u8 {
        u8::try_from(self.dice.below(below)).unwrap_or(u8::MAX)
    }

    fn millis(&mut self, from: u32, to: u32) -> u32 {
        from + u32::try_from(self.dice.below(u64::from(to - from))).unwrap_or(0)
    }

    fn gap(&mut self) -> u32 {
        match self.dice.below(100) {
            0..20 => 0,
            20..50 => self.millis(1, 60),
            50..75 => self.millis(60, 1_500),
            75..92 => self.millis(1_500, 6_000),
            92..98 => self.millis(20_000, 90_000),
            _ => self.millis(280_000, 420_000),
        }
    }

    fn pod(&mut self) -> u8 {
        self.small(self.pods)
    }

    fn named(&mut self) -> Named {
        Named {
            pod: self.pod(),
            name: self.small(NAMES),
        }
    }

    fn act(&mut self) -> Act {
        let trouble = 6 * self.severity;
        match self.dice.below(100) {
            n if n < trouble => self.trouble(),
            n if n < trouble + 14 => self.consumer(),
            _ => self.on_the_node(),
        }
    }

    /// Something that is possible on the node; a new sandbox if nothing else is found.
    fn on_the_node(&mut self) -> Act {
        for _ in 0..24 {
            let act = self.perhaps_on_the_node();
            if self.node.changes(act).is_some() {
                return act;
            }
        }
        Act::Run {
            pod: self.pod(),
            containers: self.small(NAMES + 1),
        }
    }

    fn perhaps_on_the_node(&mut self) -> Act {
        let (pod, named) = (self.pod(), self.named());
        match self.dice.below(100) {
            0..14 => Act::Run {
                pod,
                containers: self.small(NAMES + 1),
            },
            14..24 => Act::Create(named),
            24..38 => Act::Start(named),
            38..50 => Act::RunContainer(named),
            50..53 => Act::FailStart(named),
            53..74 => Act::Exit {
                container: named,
                code: [0, 1, 7, 137][usize::from(self.small(4))],
            },
            74..86 => Act::Remove(named),
            86..88 => Act::SetUnknown(named),
            88..92 => Act::StopSandbox { pod },
            92..93 => Act::LoseSandbox { pod },
            _ => Act::RemoveSandbox { pod },
        }
    }

    fn consumer(&mut self) -> Act {
        let pod = self.pod();
        match self.dice.below(16) {
            14 => Act::Subscribe,
            15 => Act::GiveUp,
            0..2 => Act::StopReading,
            2 => Act::ResumeReading,
            3..5 => Act::Mark,
            5..10 => Act::Ask {
                pod,
                phases_only: self.dice.below(2) == 0,
            },
            10..12 => Act::Relist { pod },
            12 => Act::RelistAll,
            _ => Act::Reinspect { pod },
        }
    }

    fn trouble(&mut self) -> Act {
        let next = 1 + u32::from(self.small(4));
        match self.dice.below(104) {
            0..12 => Act::Lose { next },
            12..22 => Act::Delay {
                next,
                millis: match self.dice.below(4) {
                    0 => self.millis(20_000, 240_000),
                    1 => self.millis(1_000, 20_000),
                    _ => self.millis(20, 1_000),
                },
            },
            22..28 => Act::Duplicate { next },
            28..35 => Act::Reorder { next },
            35..39 => Act::Overflow { next },
            39..41 => Act::Mute,
            41..45 => Act::Unmute,
            45..47 => Act::Compete,
            47..50 => Act::StopCompeting,
            50..52 => Act::FalseDeleted {
                pod: self.pod(),
                name: (self.dice.below(3) > 0).then_some(self.small(NAMES)),
            },
            52..54 => Act::Garbage,
            54..57 => Act::EndStream,
            57..62 => Act::BreakStream,
            62..65 => Act::StopRuntime,
            65..71 => Act::StartRuntime,
            71..73 => Act::FreezeRuntime,
            73..77 => Act::ThawRuntime,
            77..81 => Act::StepClock {
                millis: i64::from(self.millis(1, 7_200_000)) * [-1, 1][usize::from(self.small(2))],
            },
            81..88 => Act::Fail {
                call: self.method(),
                times: next,
            },
            88..95 => Act::Slow {
                call: self.method(),
                times: next,
                millis: match self.dice.below(6) {
                    0 => self.millis(10_000, 130_000),
                    1 | 2 => self.millis(1_000, 10_000),
                    _ => self.millis(20, 1_000),
                },
                read_late: self.dice.below(2) == 0,
            },
            95..98 => Act::Cut {
                call: [Method::ListSandboxes, Method::ListContainers][usize::from(self.small(2))],
                times: next,
            },
            98..102 => Act::Garble {
                pod: self.pod(),
                name: (self.dice.below(3) > 0).then_some(self.small(NAMES)),
            },
            _ => Act::Heal,
        }
    }

    fn method(&mut self) -> Method {
        match self.dice.below(8) {
            0 => Method::Version,
            1 | 2 => Method::ListSandboxes,
            3 | 4 => Method::ListContainers,
            5 => Method::SandboxStatus,
            _ => Method::ContainerStatus,
        }
    }
}
