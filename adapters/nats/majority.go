package nats

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// majorityCheck is the time between two looks, and majorityTime how long the leader of a stream may take to
// answer one. The others answer it each second: it has not heard one for longer than heardTime if that is gone.
const (
	majorityCheck = time.Second
	majorityTime  = 2 * time.Second
	heardTime     = 3 * time.Second
)

// lookForMajority looks for a majority of the servers. Without one, a server takes messages that it does not store,
// for 10 to 20 seconds: hubs that hear each other beside the streams do not notice.
func (j *Journal) lookForMajority(ctx context.Context) {
	if err := j.hasMajority(ctx); ctx.Err() == nil {
		j.majority.set(err)
	}
}

// hasMajority returns why the servers can store nothing, by the word of the leader of the tasks.
func (j *Journal) hasMajority(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, majorityTime)
	defer cancel()
	info, err := j.tasks.info(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		err = errors.New("no NATS server has answered that leads it")
		fallthrough
	case err != nil:
		return j.nothingStored(err)
	case info.Cluster == nil:
		return nil
	}
	heard := 1
	for _, r := range info.Cluster.Replicas {
		if never := r.Active == 0 && r.Offline; !never && r.Active <= heardTime {
			heard++
		}
	}
	if all := 1 + len(info.Cluster.Replicas); 2*heard <= all {
		return j.nothingStored(fmt.Errorf("%d of its %d NATS servers hear each other, which is no majority", heard, all))
	}
	return nil
}

func (j *Journal) nothingStored(why error) error {
	return fmt.Errorf("the stream %s stores nothing (%w): once it does, what waits is recorded without a restart", j.tasks.stream, why)
}
